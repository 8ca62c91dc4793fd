// A stand-in for the public service's sample relying party for Node, from what is known of it: its settings in one file, its
// own key set at its own address, one thread, openid-client with its defaults, no authentication_context_type.

import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'

const installed = createRequire(new URL('../../../examples/node/package.json', import.meta.url))
const oidc = installed('openid-client')

const settings = JSON.parse(await readFile(process.argv[2], 'utf8'))
const { PRIVATE_SIG_KEY: signing, PRIVATE_ENC_KEY: decrypting, PUBLIC_SIG_KEY, PUBLIC_ENC_KEY } = settings.KEYS
const HOME = `http://localhost:${settings.SERVER_PORT}`

async function named(jwk, name, usages) {
  const key = await crypto.subtle.importKey('jwk', jwk, { name, namedCurve: jwk.crv }, false, usages)
  return { key, kid: jwk.kid, alg: jwk.alg }
}

// http is not allowed to it: its provider has to be https.
const ourselves = oidc.PrivateKeyJwt(await named(signing, 'ECDSA', ['sign']))
const provider = await oidc.discovery(new URL(settings.ISSUER_URL), settings.CLIENT_ID, undefined, ourselves)
const private_ = await named(decrypting, 'ECDH', ['deriveKey', 'deriveBits'])
oidc.enableDecryptingResponses(provider, ['A256GCM', 'A256CBC-HS512'], private_)

let attempt, person

const pages = {
  '/.well-known/jwks.json': async () => ({ keys: [PUBLIC_SIG_KEY, PUBLIC_ENC_KEY] }),

  '/login': async () => {
    const verifier = oidc.randomPKCECodeVerifier()
    const proving = oidc.getDPoPHandle(provider, await oidc.randomDPoPKeyPair())
    attempt = { verifier, proving, state: oidc.randomState(), nonce: oidc.randomNonce() }
    const asked = {
      redirect_uri: settings.REDIRECT_URI,
      scope: settings.SCOPES,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    return oidc.buildAuthorizationUrlWithPAR(provider, asked, { DPoP: proving })
  },

  '/callback': async (address) => {
    const { verifier, proving, state, nonce } = attempt
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true }
    const tokens = await oidc.authorizationCodeGrant(provider, address, checks, undefined, { DPoP: proving })
    const claims = tokens.claims()
    const userinfo = await oidc.fetchUserInfo(provider, tokens.access_token, claims.sub, { DPoP: proving })
    console.log('ID token:', claims, '\nuserinfo:', userinfo)
    person = { ...claims, ...userinfo }
    return new URL('/user', HOME)
  },

  '/user': async () => person ?? {},
}

createServer(async (request, response) => {
  const address = new URL(request.url, HOME)
  try {
    const answer = await pages[address.pathname](address)
    if (answer instanceof URL) response.writeHead(302, { location: answer.href }).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  } catch (error) {
    console.error(error)
    response.writeHead(401).end(String(error.error_description ?? error))
  }
}).listen(settings.SERVER_PORT, () => console.log(`Open ${HOME}`))
