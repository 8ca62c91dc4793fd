// Tests of rp.mjs against a provider of their own, without a browser: `npm install && node --test`.
//
// The provider is the program `corpid`, or with CORPID_IMAGE a container of that image. docs/testing.md is the guide.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'

const HARBOUR = '209900042K'
const folder = mkdtempSync(join(tmpdir(), 'rp-test-'))
const running = []

function start(command, environment = {}) {
  const log = openSync(join(folder, `${running.length}.log`), 'w')
  const options = { env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', log] }
  const child = spawn(command[0], command.slice(1).map(String), options)
  running.push(child)
  return child
}

const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address()
    server.close(() => resolve(port))
  })
})

// --- The provider: its directory goes in as a file, one line of JSON comes out -------------------------------

async function startProvider(port, directory) {
  const file = join(folder, 'directory.json')
  writeFileSync(file, JSON.stringify(directory))
  const image = process.env.CORPID_IMAGE
  const container = ['docker', 'run', '--rm', '--publish', `127.0.0.1:${port}:${port}`, '--env', `CORPID_PORT=${port}`,
    '--volume', `${file}:/directory.json:ro`, image, 'testing', '/directory.json']
  const child = start(image ? container : ['corpid', 'testing', '--port', port, file])
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line)
  throw new Error(`the provider did not start: see ${folder}`)
}

// `address` is where the relying party would send the browser; the answer is where the provider would send it back.
async function signIn(provider, address, order) {
  const answer = await fetch(provider.sign_ins, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ authorize_url: address, ...order }),
  })
  const said = await answer.json()
  assert.equal(answer.status, 200, said.error_description)
  return said.callback_url
}

// --- The relying party, with keys of its own -----------------------------------------------------------------

async function keyPair(use, alg, name, usages) {
  const pair = await crypto.subtle.generateKey({ name, namedCurve: 'P-256' }, true, usages)
  const { kty, crv, x, y, d } = await crypto.subtle.exportKey('jwk', pair.privateKey)
  return { kty, crv, x, y, d, use, alg, kid: `${use}-1` }
}

let provider, home

before(async () => {
  const [port, own] = [await freePort(), await freePort()]
  const keys = {
    signing: await keyPair('sig', 'ES256', 'ECDSA', ['sign', 'verify']),
    encryption: await keyPair('enc', 'ECDH-ES+A256KW', 'ECDH', ['deriveBits']),
  }
  writeFileSync(join(folder, 'keys.json'), JSON.stringify(keys), { mode: 0o600 })
  home = `http://127.0.0.1:${own}`
  provider = await startProvider(port, {
    entities: { [HARBOUR]: { type: 'UEN', name: 'Example Harbour', country: 'SG', status: 'Registered' } },
    services: { 'HARBOUR-PERMIT': { name: 'Harbour permits', roles: ['Applicant', 'Approver'] } },
    users: { // password and second factor are made
      mei: { name: 'Mei Example', memberships: [HARBOUR] },
      kai: { name: 'Kai Example', memberships: [HARBOUR] },
    },
    assignments: ['mei', 'kai'].map((user) => ({ user, entity: HARBOUR, service: 'HARBOUR-PERMIT', role: 'Applicant' })),
    clients: {
      'node-rp': {
        name: 'Node example',
        redirect_uris: [`${home}/callback`],
        jwks: { keys: Object.values(keys).map(({ d, ...publicMembers }) => publicMembers) },
        scopes: ['openid', 'authinfo', 'tpauthinfo', 'user.name', 'entity.basic_profile.name'],
        services: ['HARBOUR-PERMIT'],
      },
    },
  })
  const environment = { ISSUER: provider.issuer, PORT: own, KEYS: join(folder, 'keys.json') }
  start([process.execPath, new URL('rp.mjs', import.meta.url).pathname], environment)
  while (!(await fetch(home).catch(() => undefined))) await pause(100)
})

after(() => running.forEach((child) => child.kill()))

async function shown(order) {
  const login = await fetch(`${home}/login`, { redirect: 'manual' })
  const callback = await signIn(provider, login.headers.get('location'), order)
  const page = await fetch(callback, { headers: { cookie: login.headers.get('set-cookie').split(';')[0] } })
  return [page.status, await page.text()]
}

test('the roles of the chosen entity are shown', async () => {
  const [status, page] = await shown({ user: 'mei', entity: HARBOUR })
  assert.equal(status, 200)
  assert.match(page, /Mei Example/)
  assert.match(page, /HARBOUR-PERMIT/)
  assert.match(page, /Applicant/)
})

test('a person made for one sign-in needs no directory', async () => {
  const role = { service: 'HARBOUR-PERMIT', role: 'Approver' }
  const [, page] = await shown({ anybody: { person: { name: 'Ann Anybody' }, entity: HARBOUR, roles: [role] } })
  assert.match(page, /Approver/)
})

test('without consent nobody is signed in', async () => {
  const [status, page] = await shown({ user: 'kai', entity: HARBOUR, consent: 'refuse' })
  assert.equal(status, 403)
  assert.match(page, /access_denied/)
})
