// A relying party on openid-client. The argument is its registration (docs/libraries.md); it prints the address for the
// browser, reads the callback, and prints what it learned.

import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { importJWK } from 'jose'
import * as oidc from 'openid-client'

const rp = JSON.parse(readFileSync(process.argv[2], 'utf8'))

// piece
async function connect() {
  const authentication = oidc.PrivateKeyJwt({ key: await importJWK(rp.signing), kid: rp.signing.kid })
  const metadata = { id_token_signed_response_alg: 'ES256' }
  if (rp.userinfo_signed) metadata.userinfo_signed_response_alg = 'ES256'
  const local = rp.issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []
  const found = await oidc.discovery(new URL(rp.issuer), rp.client_id, metadata, authentication, { execute: local })
  // legacy: its resource instead of userinfo
  const server = { ...found.serverMetadata(), userinfo_endpoint: found.serverMetadata()[rp.resource] }
  const config = new oidc.Configuration(server, rp.client_id, metadata, authentication)
  local.forEach((allow) => allow(config))
  oidc.enableNonRepudiationChecks(config) // otherwise it relies on TLS and verifies no signature
  const { kid, alg } = rp.encryption
  const decryption = { key: await importJWK(rp.encryption), kid, alg }
  if (rp.id_token_encrypted) oidc.enableDecryptingResponses(config, undefined, decryption)
  return config
}

async function begin(config) {
  const DPoP = rp.bound ? oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair('ES256')) : undefined
  const attempt = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier(), DPoP }
  const request = {
    ...rp.parameters,
    redirect_uri: rp.redirect_uri,
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
    code_challenge_method: 'S256',
  }
  if (!rp.pushed) return [attempt, oidc.buildAuthorizationUrl(config, request)]
  return [attempt, await oidc.buildAuthorizationUrlWithPAR(config, request, { DPoP })]
}

async function finish(config, callback, { state, nonce, verifier, DPoP }) {
  const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
  const tokens = await oidc.authorizationCodeGrant(config, new URL(callback), checks, undefined, { DPoP })
  const userinfo = await oidc.fetchUserInfo(config, tokens.access_token, tokens.claims().sub, { DPoP })
  return { claims: tokens.claims(), userinfo }
}
// end

const config = await connect()
const [attempt, address] = await begin(config)
console.log(address.href)
const lines = createInterface({ input: process.stdin })
for await (const callback of lines) {
  console.log(JSON.stringify(await finish(config, callback, attempt)))
  break
}
lines.close()
