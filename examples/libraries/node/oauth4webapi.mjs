// A relying party on oauth4webapi. The argument is its registration (docs/libraries.md); it prints the address for the
// browser, reads the callback, and prints what it learned.

import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { compactDecrypt, importJWK } from 'jose'
import * as oauth from 'oauth4webapi'

const rp = JSON.parse(readFileSync(process.argv[2], 'utf8'))

// piece
const client = { client_id: rp.client_id, id_token_signed_response_alg: 'ES256' }
if (rp.userinfo_signed) client.userinfo_signed_response_alg = 'ES256'
const authentication = oauth.PrivateKeyJwt({ key: await importJWK(rp.signing), kid: rp.signing.kid })
const encryption = await importJWK(rp.encryption)
const options = { [oauth.allowInsecureRequests]: rp.issuer.startsWith('http:') }
if (rp.id_token_encrypted) {
  options[oauth.jweDecrypt] = async (jwe) => new TextDecoder().decode((await compactDecrypt(jwe, encryption)).plaintext)
}

async function connect() {
  const issuer = new URL(rp.issuer)
  const found = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, options))
  return { ...found, userinfo_endpoint: found[rp.resource] } // legacy: its resource instead of userinfo
}

async function begin(server) {
  const DPoP = rp.bound ? oauth.DPoP(client, await oauth.generateKeyPair('ES256')) : undefined
  const attempt = {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
    DPoP,
  }
  let request = {
    ...rp.parameters,
    client_id: rp.client_id,
    response_type: 'code',
    redirect_uri: rp.redirect_uri,
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(attempt.verifier),
    code_challenge_method: 'S256',
  }
  if (rp.pushed) {
    const answer = await oauth.pushedAuthorizationRequest(server, client, authentication, request, { ...options, DPoP })
    const { request_uri } = await oauth.processPushedAuthorizationResponse(server, client, answer)
    request = { client_id: rp.client_id, request_uri }
  }
  return [attempt, `${server.authorization_endpoint}?${new URLSearchParams(request)}`]
}

async function finish(server, callback, { state, nonce, verifier, DPoP }) {
  const parameters = oauth.validateAuthResponse(server, client, new URL(callback), state)
  const answer = await oauth.authorizationCodeGrantRequest(
    server, client, authentication, parameters, rp.redirect_uri, verifier, { ...options, DPoP },
  )
  const checks = { ...options, expectedNonce: nonce, requireIdToken: true }
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, answer, checks)
  await oauth.validateApplicationLevelSignature(server, answer, options) // of the ID token; it leaves this to you
  const claims = oauth.getValidatedIdTokenClaims(tokens)
  const response = await oauth.userInfoRequest(server, client, tokens.access_token, { ...options, DPoP })
  const userinfo = await oauth.processUserInfoResponse(server, client, claims.sub, response, options)
  if (rp.userinfo_signed) await oauth.validateApplicationLevelSignature(server, response, options)
  return { claims, userinfo }
}
// end

const server = await connect()
const [attempt, address] = await begin(server)
console.log(address)
const lines = createInterface({ input: process.stdin })
for await (const callback of lines) {
  console.log(JSON.stringify(await finish(server, callback, attempt)))
  break
}
lines.close()
