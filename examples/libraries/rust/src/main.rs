// A relying party on openidconnect and josekit. The argument is its registration (docs/libraries.md); it prints the address
// for the browser, reads the callback, and prints what it learned.

use std::{collections::HashMap, error::Error, io::stdin, str::FromStr, time::SystemTime};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use josekit::{jwe, jwk::Jwk, jws, jwt};
use openidconnect::{
    core::*, reqwest::blocking::Client as Http, url::Url, AccessToken, AccessTokenHash, AdditionalClaims, ClientId, CsrfToken,
    IdToken, IssuerUrl, Nonce, NonceVerifier, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

type Done<T> = Result<T, Box<dyn Error>>;

#[derive(Deserialize)]
struct Registration {
    issuer: String,
    client_id: String,
    redirect_uri: String,
    signing: Map<String, Value>,
    encryption: Map<String, Value>,
    parameters: HashMap<String, String>,
    pushed: bool,
    bound: bool,
    id_token_encrypted: bool,
    userinfo_signed: bool,
    resource: String,
}

// piece
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Every {
    #[serde(flatten)]
    all: Map<String, Value>, // the claims that openidconnect does not know, such as `entity`
}
impl AdditionalClaims for Every {}
type Token = IdToken<Every, CoreGenderClaim, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm>;

struct Provider {
    rp: Registration,
    http: Http,
    known: CoreProviderMetadata,
    all: Value, // what the type of the metadata leaves out
}

struct Attempt {
    state: CsrfToken,
    nonce: Nonce,
    verifier: PkceCodeVerifier,
    key: Option<Jwk>, // for DPoP
}

/// Our own tokens: assertions of who we are, and DPoP proofs.
fn signed(key: &Jwk, header: Value, mut claims: Value) -> Done<String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    claims["jti"] = json!(CsrfToken::new_random().secret());
    claims["iat"] = json!(now);
    claims["exp"] = json!(now + 60);
    let header = jws::JwsHeader::from_map(header.as_object().unwrap().clone())?;
    let payload = jwt::JwtPayload::from_map(claims.as_object().unwrap().clone())?;
    Ok(jwt::encode_with_signer(&payload, &header, &jws::ES256.signer_from_jwk(key)?)?)
}

impl Provider {
    fn connect(rp: Registration) -> Done<Self> {
        let http = Http::new();
        let known = CoreProviderMetadata::discover(&IssuerUrl::new(rp.issuer.clone())?, &http)?; // with its keys
        let document = http.get(format!("{}/.well-known/openid-configuration", rp.issuer)).send()?;
        let all = serde_json::from_str(&document.text()?)?;
        Ok(Self { rp, http, known, all })
    }

    fn endpoint(&self, name: &str) -> &str {
        self.all[name].as_str().unwrap_or_default()
    }

    /// Asks with a form, which says who we are, or with an access token.
    fn ask(&self, address: &str, form: Option<HashMap<String, String>>, key: &Option<Jwk>, token: &str) -> Done<String> {
        let mut proof = json!({"htm": if form.is_some() { "POST" } else { "GET" }, "htu": address});
        let mut request = match form {
            Some(mut form) => {
                let (us, header) = (&self.rp.client_id, json!({"kid": self.rp.signing["kid"]}));
                let claims = json!({"iss": us, "sub": us, "aud": self.rp.issuer});
                let assertion = signed(&Jwk::from_map(self.rp.signing.clone())?, header, claims)?;
                form.insert("client_assertion".into(), assertion);
                let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                form.insert("client_assertion_type".into(), kind.into());
                self.http.post(address).form(&form)
            }
            None => {
                proof["ath"] = json!(URL_SAFE_NO_PAD.encode(Sha256::digest(token)));
                let scheme = if key.is_some() { "DPoP" } else { "Bearer" };
                self.http.get(address).header("Authorization", format!("{scheme} {token}"))
            }
        };
        if let Some(key) = key {
            let header = json!({"typ": "dpop+jwt", "jwk": key.to_public_key()?.as_ref()});
            request = request.header("DPoP", signed(key, header, proof)?);
        }
        let response = request.send()?;
        let good = response.status().is_success();
        let body = response.text()?;
        if good { Ok(body) } else { Err(body.into()) }
    }

    fn begin(&self) -> Done<(Attempt, Url)> {
        let id = ClientId::new(self.rp.client_id.clone());
        let client = CoreClient::from_provider_metadata(self.known.clone(), id, None)
            .set_redirect_uri(RedirectUrl::new(self.rp.redirect_uri.clone())?);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let mut request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, CsrfToken::new_random, Nonce::new_random)
            .set_pkce_challenge(challenge);
        for (name, value) in &self.rp.parameters {
            request = match name.as_str() {
                "scope" => request.add_scopes(value.split(' ').skip(1).map(|each| Scope::new(each.into()))), // it adds openid
                _ => request.add_extra_param(name, value),
            };
        }
        let (mut address, state, nonce) = request.url();
        let key = if self.rp.bound { Some(Jwk::generate_ec_key(josekit::jwk::alg::ec::EcCurve::P256)?) } else { None };
        if self.rp.pushed {
            let form = address.query_pairs().into_owned().collect();
            let answer = self.ask(self.endpoint("pushed_authorization_request_endpoint"), Some(form), &key, "")?;
            let pushed: Value = serde_json::from_str(&answer)?;
            let request_uri = pushed["request_uri"].as_str().ok_or("no request_uri")?;
            let query = [("client_id", self.rp.client_id.as_str()), ("request_uri", request_uri)];
            address = Url::parse_with_params(self.endpoint("authorization_endpoint"), query)?;
        }
        Ok((Attempt { state, nonce, verifier, key }, address))
    }

    fn finish(&self, callback: &Url, attempt: Attempt) -> Done<(Value, Value)> {
        let given: HashMap<String, String> = callback.query_pairs().into_owned().collect();
        same("state", given.get("state"), Some(attempt.state.secret()))?;
        if self.all["authorization_response_iss_parameter_supported"] == json!(true) {
            same("iss", given.get("iss"), Some(&self.rp.issuer))?;
        }
        let form = HashMap::from([
            ("grant_type".into(), "authorization_code".into()),
            ("client_id".into(), self.rp.client_id.clone()),
            ("redirect_uri".into(), self.rp.redirect_uri.clone()),
            ("code".into(), given.get("code").ok_or("the callback has no code")?.clone()),
            ("code_verifier".into(), attempt.verifier.into_secret()),
        ]);
        let answer = self.ask(self.endpoint("token_endpoint"), Some(form), &attempt.key, "")?;
        let tokens: HashMap<String, Value> = serde_json::from_str(&answer)?;
        let access_token = tokens["access_token"].as_str().ok_or("no access token")?;
        let mut id_token = tokens["id_token"].as_str().ok_or("no ID token")?.to_owned();
        if self.rp.id_token_encrypted {
            id_token = self.decrypted(&id_token)?;
        }
        let claims = self.verified(&id_token, &attempt.nonce, Some(access_token))?;
        let mut body = self.ask(self.endpoint(&self.rp.resource), None, &attempt.key, access_token)?;
        if !body.starts_with('{') && body.matches('.').count() == 4 {
            body = self.decrypted(&body)?; // if the client is registered for encrypted userinfo
        }
        // userinfo is signed like an ID token, without a nonce
        let unasked = |_: Option<&Nonce>| Ok(());
        let userinfo = if self.rp.userinfo_signed { self.verified(&body, unasked, None)? } else { serde_json::from_str(&body)? };
        same("sub", userinfo.get("sub"), claims.get("sub"))?;
        Ok((claims, userinfo))
    }

    fn decrypted(&self, token: &str) -> Done<String> {
        let decrypter = jwe::ECDH_ES_A256KW.decrypter_from_jwk(&Jwk::from_map(self.rp.encryption.clone())?)?;
        Ok(String::from_utf8(jwe::deserialize_compact(token, &decrypter)?.0)?)
    }

    fn verified(&self, token: &str, nonce: impl NonceVerifier, access_token: Option<&str>) -> Done<Value> {
        let (id, issuer) = (ClientId::new(self.rp.client_id.clone()), self.known.issuer().clone());
        let verifier = CoreIdTokenVerifier::new_public_client(id, issuer, self.known.jwks().clone())
            .set_allowed_algs([CoreJwsSigningAlgorithm::EcdsaP256Sha256]);
        let token = Token::from_str(token)?;
        let claims = token.claims(&verifier, nonce)?;
        if let Some(secret) = access_token {
            let (alg, key) = (token.signing_alg()?, token.signing_key(&verifier)?);
            let hash = AccessTokenHash::from_token(&AccessToken::new(secret.into()), alg, key)?;
            same("at_hash", claims.access_token_hash(), Some(&hash))?;
        }
        Ok(serde_json::to_value(claims)?)
    }
}

fn same<T: PartialEq>(name: &str, found: Option<T>, expected: Option<T>) -> Done<()> {
    if found == expected { Ok(()) } else { Err(format!("{name} is another one").into()) }
}
// end

fn main() -> Done<()> {
    let file = std::env::args().nth(1).ok_or("which registration?")?;
    let provider = Provider::connect(serde_json::from_str(&std::fs::read_to_string(file)?)?)?;
    let (attempt, address) = provider.begin()?;
    println!("{address}");
    let mut callback = String::new();
    stdin().read_line(&mut callback)?;
    let (claims, userinfo) = provider.finish(&Url::parse(callback.trim())?, attempt)?;
    println!("{}", json!({"claims": claims, "userinfo": userinfo}));
    Ok(())
}
