// A relying party of CorpID in one file, on the stock library openid-client.
//
//     npm install && npm start
//
// Its first run makes two key pairs and prints the command that registers it. docs/relying-parties.md is the
// guide. Copy everything under "The protocol". The rest is a web page to try it with.

import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import * as oidc from 'openid-client'

const ISSUER = process.env.ISSUER ?? 'http://localhost:8400' // where `corpid demo` is
const CLIENT_ID = process.env.CLIENT_ID ?? 'node-rp'
const PORT = Number(process.env.PORT ?? 8410)
const KEYS = process.env.KEYS ?? 'keys.json' // private: keep it as you keep a password
const GENERATION = process.env.GENERATION ?? 'current' // or legacy, until the client's last day
const HOME = `http://127.0.0.1:${PORT}`
const CALLBACK = `${HOME}/callback` // registered, and compared character by character
const ATTEMPT_MINUTES = 15

// --- Keys: one signs (who we are), one decrypts (ID tokens). CorpID gets the public halves. ------------------

if (!existsSync(KEYS)) {
  const made = [
    { name: 'signing', use: 'sig', alg: 'ES256', algorithm: 'ECDSA', usages: ['sign', 'verify'] },
    { name: 'encryption', use: 'enc', alg: 'ECDH-ES+A256KW', algorithm: 'ECDH', usages: ['deriveBits'] },
  ].map(async ({ name, use, alg, algorithm, usages }) => {
    const pair = await crypto.subtle.generateKey({ name: algorithm, namedCurve: 'P-256' }, true, usages)
    const { kty, crv, x, y, d } = await crypto.subtle.exportKey('jwk', pair.privateKey)
    return [name, { kty, crv, x, y, d, use, alg, kid: `${use}-${randomBytes(6).toString('hex')}` }]
  })
  await writeFile(KEYS, JSON.stringify(Object.fromEntries(await Promise.all(made)), null, 2), { mode: 0o600 })
}
const keys = JSON.parse(await readFile(KEYS, 'utf8'))
const jwks = { keys: Object.values(keys).map(({ d, ...publicMembers }) => publicMembers) }
await writeFile(`${KEYS}.public`, JSON.stringify(jwks, null, 2))

const imported = async ({ d, kty, crv, x, y }, name, usage) =>
  crypto.subtle.importKey('jwk', { d, kty, crv, x, y }, { name, namedCurve: crv }, false, [usage])

// --- The protocol -------------------------------------------------------------------------------------------

// All that changes between legacy and current. A client that never used legacy needs only the first row.
const INTERFACE = {
  current: {
    pushed: true, // and tokens are bound to a DPoP key
    resource: 'userinfo_endpoint',
    parameters: {
      scope: 'openid authinfo tpauthinfo user.name entity.basic_profile.name',
      authentication_context_type: 'APP_AUTHENTICATION_DEFAULT',
      authentication_context_message: 'Sign in to the Node example', // the person sees it on every page
    },
  },
  legacy: {
    pushed: false, // the request is the query of the address, and tokens are bearer tokens
    resource: 'authorization-info_endpoint',
    parameters: { scope: 'openid authinfo tpauthinfo' },
  },
}[GENERATION]

let connection // made once: it holds CorpID's metadata and keys, and asks for new keys by itself

async function connect() {
  const metadata = { id_token_signed_response_alg: 'ES256', userinfo_signed_response_alg: 'ES256' } // and nothing else
  const key = await imported(keys.signing, 'ECDSA', 'sign')
  const authentication = oidc.PrivateKeyJwt({ key, kid: keys.signing.kid })
  // Plain http is for a CorpID on your own machine.
  const execute = ISSUER.startsWith('http://localhost:') ? [oidc.allowInsecureRequests] : []
  const found = await oidc.discovery(new URL(ISSUER), CLIENT_ID, metadata, authentication, { execute })
  // With current alone, `found` is all you need.
  const server = { ...found.serverMetadata(), userinfo_endpoint: found.serverMetadata()[INTERFACE.resource] }
  const config = new oidc.Configuration(server, CLIENT_ID, metadata, authentication)
  execute.forEach((allow) => allow(config))
  oidc.enableNonRepudiationChecks(config) // verify the signatures of ID token and userinfo
  oidc.enableDecryptingResponses(config, ['A256CBC-HS512', 'A256GCM'], {
    key: await imported(keys.encryption, 'ECDH', 'deriveBits'),
    kid: keys.encryption.kid,
    alg: keys.encryption.alg,
  })
  return config
}

// Make the request, and get the address to send the browser to. The callback needs `attempt`.
async function begin() {
  connection ??= await connect()
  const attempt = {
    state: oidc.randomState(),
    nonce: oidc.randomNonce(),
    verifier: oidc.randomPKCECodeVerifier(),
    DPoP: INTERFACE.pushed
      ? oidc.getDPoPHandle(connection, await oidc.randomDPoPKeyPair('ES256')) // one key for this sign-in
      : undefined,
  }
  const parameters = {
    ...INTERFACE.parameters,
    redirect_uri: CALLBACK,
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
    code_challenge_method: 'S256',
  }
  if (!INTERFACE.pushed) return [attempt, oidc.buildAuthorizationUrl(connection, parameters)]
  return [attempt, await oidc.buildAuthorizationUrlWithPAR(connection, parameters, { DPoP: attempt.DPoP })]
}

// Redeem the code and ask what the person may do. All checks are in here; a failed one throws.
async function finish(callback, { state, nonce, verifier, DPoP }) {
  const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
  const tokens = await oidc.authorizationCodeGrant(connection, callback, checks, undefined, { DPoP })
  const claims = tokens.claims()
  const userinfo = await oidc.fetchUserInfo(connection, tokens.access_token, claims.sub, { DPoP })
  return { claims, userinfo }
}

// `sub` names the person, and `entity` whom they act for; a client with `subject: entity` gets `sub` and `act`.
// Legacy packs the person into `sub`, and describes both in userInfo and entityInfo; the blocks are the same.
function summary({ claims, userinfo }) {
  const { userInfo, entityInfo } = claims
  const person = userInfo ? { sub: userInfo.CPUID_FullName } : claims.act ?? claims
  const entity = entityInfo ? { sub: entityInfo.CPEntID } : claims.entity ?? claims
  const own = userinfo.auth_info ?? userinfo.AuthInfo
  const forOthers = userinfo.tp_auth_info ?? userinfo.TPAuthInfo
  const roles = (own?.Result_Set.ESrvc_Result ?? []).flatMap((service) =>
    service.Auth_Result_Set.Row.map((row) => `may act as ${row.CPRole} at ${service.CPESrvcID} until ${row.EndDate}`))
  const clients = (forOthers?.Result_Set.ESrvc_Result ?? []).flatMap((service) =>
    service.Auth_Set.TP_Auth.flatMap((client) => client.Auth_Result_Set.Row.map(
      (row) => `may act as ${row.CPRole} at ${service.CPESrvcID} for ${client.CP_Clnt_ID} until ${row.EndDate}`)))
  return [
    `${person.sub_attributes?.name ?? person.sub} signed in`,
    `for ${entity.sub_attributes?.entity_name ?? entity.sub} (${entity.sub})`,
    ...roles,
    ...clients,
  ]
}

// --- A web page to try it with ------------------------------------------------------------------------------

const attempts = new Map() // cookie → attempt; with more than one server, keep them where all of them can see
const escaped = (text) => String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

function page(response, status, lines, headers = {}) {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store', ...headers })
  response.end(`<!doctype html><html lang="en"><title>Node example</title><h1>Node example</h1>
<ul>${lines.map((line) => `<li>${escaped(line)}`).join('')}</ul><p><a href="/login">Sign in</a>`)
}

const routes = {
  '/': (request, response) => page(response, 200, ['Nobody is signed in']),
  '/login': async (request, response) => {
    const [attempt, address] = await begin()
    const cookie = randomBytes(32).toString('base64url')
    attempts.set(cookie, attempt)
    setTimeout(() => attempts.delete(cookie), ATTEMPT_MINUTES * 60_000).unref()
    const attributes = 'HttpOnly; SameSite=Lax; Path=/' // on https: Secure, and a name that begins with __Host-
    response.writeHead(303, { location: address.href, 'set-cookie': `node_rp=${cookie}; ${attributes}` }).end()
  },
  '/callback': async (request, response) => {
    const cookie = /(?:^|; )node_rp=([\w-]+)/.exec(request.headers.cookie)?.[1]
    const attempt = attempts.get(cookie)
    attempts.delete(cookie) // once
    if (!attempt) return page(response, 400, ['This browser started no sign-in, or started it too long ago'])
    const lines = summary(await finish(new URL(request.url, HOME), attempt))
    console.log(lines.join('\n  ')) // here your own session for this person begins
    page(response, 200, lines)
  },
}

// The same client may use both; legacy has a last day.
const MARKED = GENERATION === 'legacy' ? ' \\\n    --generation current --generation legacy --legacy-until 2099-12-31' : ''

createServer(async (request, response) => {
  const route = routes[new URL(request.url, HOME).pathname]
  if (!route) return page(response, 404, ['There is no such page'])
  try {
    await route(request, response)
  } catch (error) {
    // `error` and `error_description` come from CorpID (at userinfo in the challenge), `code` and `cause` from the library.
    const challenge = error.cause?.[0]?.parameters
    const reason = error.error ?? challenge?.error ?? error.code ?? error.name
    const told = error.error_description ?? challenge?.error_description ?? ''
    console.error(`${reason}: ${told || (error.cause?.message ?? error.message)}`)
    page(response, reason === 'access_denied' ? 403 : 502, [`Not signed in (${reason})`, told])
  }
}).listen(PORT, '127.0.0.1', () => console.log(`Register this relying party once:

  corpid client add ${CLIENT_ID} --name "Node example" --service HARBOUR-PERMIT \\
    --redirect-uri ${CALLBACK} --jwks ${KEYS}.public${MARKED}

${JSON.stringify(jwks)}

Then open ${HOME}`))
