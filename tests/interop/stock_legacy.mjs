// A relying party on npm's @govtechsg/singpass-myinfo-oidc-helper that does what it is told, one line of JSON at a time:
// stock_legacy.py tells it. The library is as it was published; nothing in here helps it.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const installed = createRequire(new URL('../../examples/libraries/legacy_helper/package.json', import.meta.url))
const { Corppass, Util } = installed('@govtechsg/singpass-myinfo-oidc-helper')

// What it logs would otherwise stand between our lines.
Util.LoggerUtil.setLogger(Object.fromEntries(
  ['log', 'debug', 'info', 'trace', 'warn', 'error'].map((level) => [level, (...said) => console.error(...said)]),
))

let library, tokens

function key(jwk) {
  return { key: JSON.stringify(jwk), format: 'json', alg: jwk.alg }
}

const calls = {
  async connect({ discovery, clientId, redirectUri, keyFile }) {
    const { signing, encryption } = JSON.parse(await readFile(keyFile, 'utf8'))
    library = new Corppass.NdiOidcHelper({
      oidcConfigUrl: discovery,
      clientID: clientId,
      redirectUri,
      jweDecryptKey: key(encryption),
      clientAssertionSignKey: key(signing),
    })
  },

  async begin({ state, nonce }) {
    return library.constructAuthorizationUrl(state, nonce ?? undefined)
  },

  async finish({ code }) {
    tokens = await library.getTokens(code)
    const identity = await library.getIdTokenPayload(tokens)
    return {
      answer: tokens,
      identity,
      access: await library.getAccessTokenPayload(tokens),
      subject: library.extractInfoFromIdTokenSubject(identity),
    }
  },

  async roles() {
    const payload = await library.getAuthorisationInfoTokenPayload(tokens)
    return { payload, active: library.extractActiveAuthResultFromAuthInfoToken(payload) }
  },
}

// The provider's refusal: `error` of its answer. The library's own: its words.
function refusal(error) {
  return { refused: error.response?.data?.error ?? String(error), status: error.response?.status ?? null }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { call, told } = JSON.parse(line)
  const answer = await calls[call](told).then((result) => ({ result: result ?? null }), refusal)
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
