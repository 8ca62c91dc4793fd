// A relying party on @govtechsg/singpass-myinfo-oidc-helper. The argument is its registration (docs/libraries.md); it prints
// the address for the browser, reads the callback, and prints what it learned.

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import helper from '@govtechsg/singpass-myinfo-oidc-helper'

const rp = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const quiet = () => {}
helper.Util.LoggerUtil.setLogger({ log: quiet, debug: quiet, info: quiet, trace: quiet, warn: quiet, error: quiet })

// piece
function connect() {
  return new helper.Corppass.NdiOidcHelper({
    oidcConfigUrl: `${rp.issuer}/.well-known/openid-configuration`,
    clientID: rp.client_id,
    redirectUri: rp.redirect_uri,
    jweDecryptKey: { key: JSON.stringify(rp.encryption), format: 'json', alg: rp.encryption.alg },
    clientAssertionSignKey: { key: JSON.stringify(rp.signing), format: 'json', alg: rp.signing.alg },
  })
}

async function begin(library) {
  const attempt = { state: randomBytes(32).toString('base64url'), nonce: randomBytes(32).toString('base64url') }
  return [attempt, await library.constructAuthorizationUrl(attempt.state, attempt.nonce)]
}

async function finish(library, callback, { state, nonce }) {
  const given = new URL(callback).searchParams
  if (given.get('state') !== state) throw new Error('the callback is of another sign-in')
  const tokens = await library.getTokens(given.get('code'))
  const claims = await library.getIdTokenPayload(tokens)
  if (claims.nonce !== nonce) throw new Error('the ID token is of another sign-in')
  const userinfo = await library.getAuthorisationInfoTokenPayload(tokens)
  if (userinfo.sub !== claims.sub) throw new Error('authorization-info is about somebody else')
  return { claims, userinfo }
}
// end

const library = connect()
const [attempt, address] = await begin(library)
console.log(address)
const lines = createInterface({ input: process.stdin })
for await (const callback of lines) {
  console.log(JSON.stringify(await finish(library, callback, attempt)))
  break
}
lines.close()
