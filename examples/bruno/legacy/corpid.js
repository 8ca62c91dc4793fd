// What a request to CorpID needs that no form can hold: a client assertion, a DPoP proof, PKCE. The requests of these
// collections call it before they are sent. It uses Node's own cryptography; the keys lie in keys.json of the collection.

const crypto = require('crypto')
const fs = require('fs')
const path = require('path')

const base64url = (content) => Buffer.from(content).toString('base64url')
const random = (bytes) => crypto.randomBytes(bytes).toString('base64url')
const digest = (text) => crypto.createHash('sha256').update(text).digest('base64url')
const seconds = () => Math.floor(Date.now() / 1000)

const publicMembers = ({ d, ...rest }) => rest

function pair(more) {
  const { privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...privateKey.export({ format: 'jwk' }), ...more }
}

// Two key pairs, made once. keys.json.public is what you register.
function keys(folder) {
  const file = path.join(folder, 'keys.json')
  if (!fs.existsSync(file)) {
    const made = {
      signing: pair({ use: 'sig', alg: 'ES256', kid: `sig-${random(6)}` }),
      encryption: pair({ use: 'enc', alg: 'ECDH-ES+A256KW', kid: `enc-${random(6)}` }),
    }
    fs.writeFileSync(file, JSON.stringify(made, null, 2), { mode: 0o600 })
    fs.writeFileSync(`${file}.public`, JSON.stringify({ keys: Object.values(made).map(publicMembers) }, null, 2))
  }
  return JSON.parse(fs.readFileSync(file, 'utf8'))
}

function signed(header, claims, jwk) {
  const content = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`
  const key = crypto.createPrivateKey({ key: jwk, format: 'jwk' })
  const signature = crypto.sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' })
  return `${content}.${base64url(signature)}`
}

// A new sign-in: state, nonce, PKCE, and one DPoP key that is used until userinfo.
function begin(bru) {
  const { d, x, y, crv, kty } = pair({})
  bru.setVar('state', random(24))
  bru.setVar('nonce', random(24))
  bru.setVar('code_verifier', random(48))
  bru.setVar('code_challenge', digest(bru.getVar('code_verifier')))
  bru.setVar('dpop_key', JSON.stringify({ kty, crv, x, y, d }))
  bru.setVar('dpop_jkt', digest(JSON.stringify({ crv, kty, x, y })))
}

// Proves the client, at PAR and token: a new assertion for each request.
function authenticate(bru) {
  const { signing } = keys(bru.cwd())
  const client = bru.getEnvVar('client_id')
  const claims = { iss: client, sub: client, aud: bru.getEnvVar('issuer'), iat: seconds(), exp: seconds() + 60, jti: random(16) }
  bru.setVar('client_assertion', signed({ typ: 'JWT', alg: 'ES256', kid: signing.kid }, claims, signing))
}

// Proves the key: a new proof for each request; at resources it names the access token.
function prove(bru, method, url, accessToken) {
  const key = JSON.parse(bru.getVar('dpop_key'))
  const claims = { htm: method, htu: url, iat: seconds(), jti: random(16) }
  if (accessToken) claims.ath = digest(accessToken)
  bru.setVar('dpop', signed({ typ: 'dpop+jwt', alg: 'ES256', jwk: publicMembers(key) }, claims, key))
}

// Prints the address to open in a browser.
function print(bru, url, names, values) {
  const value = (text) => text.replace(/\{\{(\w+)\}\}/g, (_, name) => bru.getVar(name) ?? bru.getEnvVar(name))
  console.log(`${url}?${new URLSearchParams(names.map((name, place) => [name, value(values[place])]))}`)
}

// The claims of a JWT, to look at. An RP verifies the signature first.
const claims = (jwt) => JSON.parse(Buffer.from(jwt.split('.')[1], 'base64url').toString())

module.exports = { keys, begin, authenticate, prove, print, claims }
