// A relying party of CorpID in one file, on the stock libraries openid-client and jose: `npm install && npm start`.
// docs/relying-parties.md is the guide.

import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { compactDecrypt, createRemoteJWKSet, importJWK, jwtVerify } from 'jose'
import * as oidc from 'openid-client'

const ISSUER = process.env.ISSUER ?? 'http://localhost:8400' // where `corpid demo` is
const CLIENT_ID = process.env.CLIENT_ID ?? 'node-rp'
const HOME = `http://127.0.0.1:${process.env.PORT ?? 8410}`
const CALLBACK = `${HOME}/callback` // registered, and compared character by character
const LEGACY = (process.env.GENERATION ?? 'current') === 'legacy' // until the client's last day
// All that changes between the two. `current` also pushes the request, and binds tokens to a DPoP key.
const RESOURCE = LEGACY ? 'authorization-info_endpoint' : 'userinfo_endpoint'
const SCOPE = LEGACY ? 'openid authinfo tpauthinfo' : 'openid authinfo tpauthinfo user.name'
const CONTEXT = LEGACY ? {} : { authentication_context_type: 'APP_AUTHENTICATION_DEFAULT' }

// One key says who we are, one decrypts ID tokens. Keep the file as you keep a password.
const keys = JSON.parse(readFileSync(process.env.KEYS ?? 'keys.json', 'utf8'))
const signing = await importJWK(keys.signing)
const encryption = await importJWK(keys.encryption)

let connection // made once: CorpID's metadata and its keys, fetched again when a token names an unknown one

async function connect() {
  // Plain http is for a CorpID on your own machine.
  const execute = ISSUER.startsWith('http://localhost:') ? [oidc.allowInsecureRequests] : []
  const authentication = oidc.PrivateKeyJwt({ key: signing, kid: keys.signing.kid })
  const metadata = { id_token_signed_response_alg: 'ES256' } // and nothing else
  const config = await oidc.discovery(new URL(ISSUER), CLIENT_ID, metadata, authentication, { execute })
  const { kid, alg } = keys.encryption
  oidc.enableDecryptingResponses(config, ['A256CBC-HS512', 'A256GCM'], { key: encryption, kid, alg })
  const published = new URL(config.serverMetadata().jwks_uri)
  // openid-client itself looks for a new key once a minute at most, and would refuse tokens until then.
  return { config, published: createRemoteJWKSet(published, { cacheMaxAge: 3_600_000, cooldownDuration: 1_000 }) }
}

// Make the request, and get the address to send the browser to. The callback needs `attempt`.
async function begin() {
  connection ??= await connect()
  const { config } = connection
  const attempt = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() }
  const parameters = {
    ...CONTEXT,
    scope: SCOPE,
    redirect_uri: CALLBACK,
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
    code_challenge_method: 'S256',
  }
  if (LEGACY) return [attempt, oidc.buildAuthorizationUrl(config, parameters)]
  attempt.DPoP = oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair('ES256')) // one key for this sign-in
  return [attempt, await oidc.buildAuthorizationUrlWithPAR(config, parameters, { DPoP: attempt.DPoP })]
}

// openid-client would also take what was not encrypted.
async function decrypted(token) {
  return new TextDecoder().decode((await compactDecrypt(token, encryption)).plaintext)
}

// The claims of a token that CorpID signed for us alone, just now.
async function verified(token) {
  const { payload } = await jwtVerify(token, connection.published, {
    algorithms: ['ES256'],
    issuer: ISSUER,
    requiredClaims: ['sub', 'exp'],
    maxTokenAge: '10 minutes', // nor may `iat` be in the future
    clockTolerance: 30,
  })
  if (payload.aud !== CLIENT_ID) throw new Error('the token is for another client')
  return payload
}

// Redeem the code and ask what the person may do. All checks are in here; a failed one throws.
async function finish(callback, { state, nonce, verifier, DPoP }) {
  const { config } = connection
  const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
  const tokens = await oidc.authorizationCodeGrant(config, callback, checks, undefined, { DPoP })
  if (tokens.token_type !== (LEGACY ? 'bearer' : 'dpop')) throw new Error('the access token is of another type')
  const claims = await verified(await decrypted(tokens.id_token))
  const hash = createHash('sha256').update(tokens.access_token).digest().subarray(0, 16)
  if (claims.at_hash !== hash.toString('base64url')) throw new Error('the ID token is of another access token')
  const resource = new URL(config.serverMetadata()[RESOURCE])
  const token = tokens.access_token
  const answer = await oidc.fetchProtectedResource(config, token, resource, 'GET', undefined, undefined, { DPoP })
  if (!answer.ok) throw new Error(`userinfo answered ${answer.status}`)
  const body = await answer.text()
  const userinfo = await verified(body.split('.').length === 5 ? await decrypted(body) : body)
  if (userinfo.sub !== claims.sub) throw new Error('userinfo is about somebody else')
  return page(claims, userinfo)
}

// Who signed in, and what they may do for the entity that they act for.
function page(claims, userinfo) {
  const services = (userinfo.auth_info ?? userinfo.AuthInfo)?.Result_Set.ESrvc_Result ?? []
  const roles = services.flatMap(({ CPESrvcID, Auth_Result_Set }) =>
    Auth_Result_Set.Row.map(({ CPRole }) => `may act as ${CPRole} at ${CPESrvcID}`),
  )
  return ['Signed in', ...roles, JSON.stringify(claims, null, 2), JSON.stringify(userinfo, null, 2)].join('\n')
}

const attempts = new Map() // cookie → attempt; drop old ones, and keep them where all your servers can see them

createServer(async (request, response) => {
  const url = new URL(request.url, HOME)
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  let [status, text] = [404, 'Sign in at /login']
  try {
    if (url.pathname === '/login') {
      const [attempt, address] = await begin()
      const cookie = randomBytes(32).toString('base64url')
      attempts.set(cookie, attempt)
      headers['set-cookie'] = `node_rp=${cookie}; HttpOnly; SameSite=Lax; Path=/` // on https: Secure
      headers.location = address.href
      status = 303
    } else if (url.pathname === '/callback') {
      const cookie = /(?:^|; )node_rp=([\w-]+)/.exec(request.headers.cookie)?.[1]
      const attempt = attempts.get(cookie)
      attempts.delete(cookie) // once
      if (!attempt) throw new Error('this browser started no sign-in, or finished it already')
      text = await finish(url, attempt) // here your own session for this person begins
      status = 200
    }
  } catch (error) {
    // `error` and `error_description` are CorpID's words (at userinfo in the challenge); others are the library's.
    const found = error.cause?.[0]?.parameters ?? error
    const reason = found.error_description ?? error.cause?.message ?? error.message
    status = 403
    text = `Refused: ${found.error ?? error.code ?? error.name}: ${reason}`
    console.error(text)
  }
  response.writeHead(status, headers).end(text)
}).listen(new URL(HOME).port, '127.0.0.1', () => console.log(`Open ${HOME}/login`))
