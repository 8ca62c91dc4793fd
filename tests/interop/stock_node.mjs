// A relying party on npm's openid-client that does what it is told, one line of JSON at a time: stock_node.py tells it.
// Its strict checks are on. Nothing in here knows of a generation of the interface.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const installed = createRequire(new URL('../../examples/node/package.json', import.meta.url))
const oidc = installed('openid-client')
const oauth = installed('oauth4webapi') // what openid-client is made of: its check of userinfo, for other resources

let config, attempt, tokens

async function imported({ d, kty, crv, x, y }, name, usage) {
  return crypto.subtle.importKey('jwk', { d, kty, crv, x, y }, { name, namedCurve: crv }, false, [usage])
}

async function newKey() {
  return oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair('ES256'))
}

const calls = {
  async connect({ issuer, clientId, keyFile, metadata, decrypts }) {
    const { signing, encryption } = JSON.parse(await readFile(keyFile, 'utf8'))
    const authentication = oidc.PrivateKeyJwt({ key: await imported(signing, 'ECDSA', 'sign'), kid: signing.kid })
    const options = { execute: [oidc.allowInsecureRequests] } // plain http, on this machine
    config = await oidc.discovery(new URL(issuer), clientId, metadata, authentication, options)
    oidc.enableNonRepudiationChecks(config)
    if (!decrypts) return
    oidc.enableDecryptingResponses(config, decrypts, {
      key: await imported(encryption, 'ECDH', 'deriveBits'),
      kid: encryption.kid,
      alg: encryption.alg,
    })
  },

  async begin({ pushed, bound, bare, parameters }) {
    attempt = { verifier: oidc.randomPKCECodeVerifier(), DPoP: bound ? await newKey() : undefined }
    if (!bare) Object.assign(attempt, { state: oidc.randomState(), nonce: oidc.randomNonce() })
    const { state, nonce, DPoP } = attempt
    const request = {
      ...parameters,
      ...(bare ? {} : { state, nonce }),
      code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
    }
    const address = pushed
      ? await oidc.buildAuthorizationUrlWithPAR(config, request, { DPoP })
      : oidc.buildAuthorizationUrl(config, request)
    return address.href
  },

  async finish({ url, form, withAnotherKey }) {
    const arrived = new URL(url)
    if (arrived.hash) [arrived.search, arrived.hash] = [arrived.hash.slice(1), ''] // as a page's script hands it over
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const callback = form === null ? arrived : new Request(url, { method: 'POST', headers, body: form })
    const checks = {
      expectedState: attempt.state,
      expectedNonce: attempt.nonce,
      pkceCodeVerifier: attempt.verifier,
      idTokenExpected: true,
    }
    const DPoP = withAnotherKey ? await newKey() : attempt.DPoP
    tokens = await oidc.authorizationCodeGrant(config, callback, checks, undefined, { DPoP })
    return { claims: tokens.claims(), answer: tokens }
  },

  async userinfo() {
    return oidc.fetchUserInfo(config, tokens.access_token, tokens.claims().sub, { DPoP: attempt.DPoP })
  },

  async read({ endpoint, method }) {
    const server = config.serverMetadata()
    const address = new URL(server[endpoint])
    const { DPoP } = attempt
    const response = await oidc.fetchProtectedResource(
      config, tokens.access_token, address, method, undefined, undefined, { DPoP },
    )
    const claims = await oauth.processUserInfoResponse(server, config.clientMetadata(), tokens.claims().sub, response)
    await oauth.validateApplicationLevelSignature(server, response, { [oauth.allowInsecureRequests]: true })
    return claims
  },
}

// The provider's refusal: `error`, at resources in the challenge. The library's own: `code`.
function refusal(error) {
  const challenge = error.cause?.[0]?.parameters
  return { refused: challenge?.error ?? error.error ?? error.code ?? String(error), status: error.status ?? null }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { call, told } = JSON.parse(line)
  const answer = await calls[call](told).then((result) => ({ result: result ?? null }), refusal)
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
