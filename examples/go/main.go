// A relying party of CorpID in one file, on golang.org/x/oauth2 and go-oidc; DPoP, which they lack, is with go-jose.
//
//	go run .
//
// Its first run makes two key pairs and prints the command that registers it. docs/relying-parties.md is the guide.
package main

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"
)

var (
	issuer   = setting("ISSUER", "http://localhost:8400") // where `corpid demo` is
	clientID = setting("CLIENT_ID", "go-rp")
	port     = setting("PORT", "8413")
	keyFile  = setting("KEYS", "keys.json")                      // private: keep it as you keep a password
	legacy   = setting("GENERATION", "current") == "legacy"      // until the client's last day
	callback = fmt.Sprintf("http://127.0.0.1:%s/callback", port) // registered, and compared character by character
	keys     = map[string]jose.JSONWebKey{}                      // one signs (who we are), one decrypts (ID tokens)
	attempts sync.Map                                            // cookie → attempt; drop old ones, and share them among servers
)

type attempt struct {
	state, nonce, verifier string
	http                   *http.Client
}

// corpID has what the libraries found; connect makes it once.
type corpID struct {
	oauth2.Config
	verifier       *oidc.IDTokenVerifier // it asks for CorpID's keys, and again if it meets an unknown one
	push, resource string
	named          bool // callbacks carry iss
}

var connect = sync.OnceValues(func() (*corpID, error) {
	provider, err := oidc.NewProvider(context.Background(), issuer)
	if err != nil {
		return nil, err
	}
	var found struct {
		Push          string `json:"pushed_authorization_request_endpoint"`
		UserInfo      string `json:"userinfo_endpoint"`
		Authorization string `json:"authorization-info_endpoint"`
		Named         bool   `json:"authorization_response_iss_parameter_supported"`
	}
	err = provider.Claims(&found)
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInParams
	made := &corpID{push: found.Push, resource: found.UserInfo, named: found.Named, Config: oauth2.Config{
		ClientID: clientID, Endpoint: endpoint, RedirectURL: callback, Scopes: []string{"openid", "authinfo", "tpauthinfo"}}}
	made.verifier = provider.Verifier(&oidc.Config{ClientID: clientID, SupportedSigningAlgs: []string{"ES256"}})
	if legacy {
		made.resource = found.Authorization
	} else {
		made.Scopes = append(made.Scopes, "user.name", "entity.basic_profile.name")
	}
	return made, err
})

// transport authenticates us in every form, and proves the sign-in's key; legacy has no such key.
type transport struct {
	key   *ecdsa.PrivateKey
	nonce string
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	var form []byte
	if request.Body != nil {
		form, _ = io.ReadAll(request.Body)
	}
	for {
		sent, now := request.Clone(request.Context()), time.Now().Unix()
		if form != nil {
			assertion := signed(keys["signing"], "JWT", false, map[string]any{"iss": clientID, "sub": clientID,
				"aud": issuer, "iat": now, "exp": now + 60, "jti": rand.Text()}) // the audience is the issuer, not the endpoint
			body := fmt.Sprintf("%s&client_assertion_type=%s&client_assertion=%s", form,
				url.QueryEscape("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"), assertion)
			sent.Body, sent.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		}
		if t.key != nil {
			proof := map[string]any{"jti": rand.Text(), "htm": sent.Method, "htu": sent.URL.String(), "iat": now}
			if token, bound := strings.CutPrefix(sent.Header.Get("Authorization"), "DPoP "); bound {
				proof["ath"] = hashed(token)
			}
			if t.nonce != "" {
				proof["nonce"] = t.nonce
			}
			sent.Header.Set("DPoP", signed(jose.JSONWebKey{Key: t.key, Algorithm: "ES256"}, "dpop+jwt", true, proof))
		}
		response, err := http.DefaultTransport.RoundTrip(sent)
		if err != nil || response.Header.Get("DPoP-Nonce") == "" || response.StatusCode < 400 || t.nonce != "" {
			return response, err
		}
		t.nonce = response.Header.Get("DPoP-Nonce") // CorpID wants its own nonce in the proof: once more
		response.Body.Close()
	}
}

func signed(key jose.JSONWebKey, kind string, embed bool, claims map[string]any) string {
	options := (&jose.SignerOptions{EmbedJWK: embed}).WithType(jose.ContentType(kind))
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key}, options))
	return must(jwt.Signed(signer).Claims(claims).Serialize())
}

// begin makes the request. It returns what the callback needs, and the address to send the browser to.
func begin() (*attempt, string, error) {
	corpid, err := connect()
	if err != nil {
		return nil, "", err
	}
	tried := &attempt{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), &http.Client{Transport: &transport{}, Timeout: 10 * time.Second}}
	address := corpid.AuthCodeURL(tried.state, oidc.Nonce(tried.nonce), oauth2.S256ChallengeOption(tried.verifier))
	if legacy { // the request is the query of the address
		return tried, address, nil
	}
	tried.http.Transport = &transport{key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
	form := must(url.Parse(address)).Query()
	form.Set("authentication_context_type", "APP_AUTHENTICATION_DEFAULT")
	response, err := tried.http.PostForm(corpid.push, form)
	answer, err := body(response, err)
	var pushed struct {
		RequestURI string `json:"request_uri"`
	}
	if err == nil {
		err = json.Unmarshal(answer, &pushed)
	}
	query := url.Values{"client_id": {clientID}, "request_uri": {pushed.RequestURI}}
	return tried, corpid.Endpoint.AuthURL + "?" + query.Encode(), err
}

// finish redeems the code and asks what the person may do. All checks are in here.
func finish(ctx context.Context, tried *attempt, returned url.Values) (*claims, *claims, error) {
	corpid, err := connect()
	if err != nil {
		return nil, nil, err
	}
	if returned.Get("state") != tried.state || (corpid.named && returned.Get("iss") != issuer) {
		return nil, nil, errors.New("wrong state or iss in the callback")
	}
	if returned.Get("code") == "" {
		return nil, nil, &oauth2.RetrieveError{ErrorCode: returned.Get("error"), ErrorDescription: returned.Get("error_description")}
	}
	tokens, err := corpid.Exchange(context.WithValue(ctx, oauth2.HTTPClient, tried.http), returned.Get("code"), oauth2.VerifierOption(tried.verifier))
	if err != nil {
		return nil, nil, err
	}
	encrypted, _ := tokens.Extra("id_token").(string)
	wraps := []jose.KeyAlgorithm{jose.KeyAlgorithm(keys["encryption"].Algorithm)}
	sealed, err := jose.ParseEncryptedCompact(encrypted, wraps, []jose.ContentEncryption{jose.A256CBC_HS512, jose.A256GCM})
	if err != nil {
		return nil, nil, err
	}
	inner, err := sealed.Decrypt(keys["encryption"])
	if err != nil {
		return nil, nil, err
	}
	idToken, person, err := corpid.verified(ctx, string(inner))
	if err != nil {
		return nil, nil, err
	}
	if idToken.Nonce != tried.nonce {
		return nil, nil, errors.New("the nonce is of another sign-in")
	}
	if err := idToken.VerifyAccessToken(tokens.AccessToken); err != nil {
		return nil, nil, err
	}
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, corpid.resource, nil))
	request.Header.Set("Authorization", tokens.TokenType+" "+tokens.AccessToken) // DPoP, or in legacy Bearer
	response, err := tried.http.Do(request)
	answer, err := body(response, err)
	if err != nil {
		return nil, nil, err
	}
	about, told, err := corpid.verified(ctx, string(answer)) // userinfo is a signed JWT, too
	if err == nil && about.Subject != idToken.Subject {
		err = errors.New("userinfo is about somebody else")
	}
	return person, told, err
}

type rows struct {
	Rows []struct{ CPRole, EndDate string } `json:"Row"`
}

type block struct {
	Result struct {
		Services []struct {
			ID     string `json:"CPESrvcID"`
			Own    rows   `json:"Auth_Result_Set"`
			Others struct {
				Clients []struct {
					ID  string `json:"CP_Clnt_ID"`
					Own rows   `json:"Auth_Result_Set"`
				} `json:"TP_Auth"`
			} `json:"Auth_Set"`
		} `json:"ESrvc_Result"`
	} `json:"Result_Set"`
}

// claims of the ID token and of userinfo. `sub` names the person, and `entity` whom they act for; with
// `subject: entity` they are in `act` and `sub`. Legacy has userInfo and entityInfo; the blocks are the same.
type claims struct {
	Sub        string
	Attributes struct {
		Name   string
		Entity string `json:"entity_name"`
	} `json:"sub_attributes"`
	Act, Entity *claims
	UserInfo    *struct{ CPUID_FullName string }
	EntityInfo  *struct{ CPEntID string }
	Own         block `json:"auth_info"`
	Others      block `json:"tp_auth_info"`
	AuthInfo    block
	TPAuthInfo  block
}

func (c *corpID) verified(ctx context.Context, token string) (*oidc.IDToken, *claims, error) {
	checked, err := c.verifier.Verify(ctx, token)
	if err != nil {
		return nil, nil, err
	}
	told := &claims{}
	return checked, told, checked.Claims(told)
}

func summary(told, userinfo *claims) []string {
	person, entity := told, told
	if told.Act != nil {
		person = told.Act
	}
	if told.Entity != nil {
		entity = told.Entity
	}
	name, whom := cmp.Or(person.Attributes.Name, person.Sub), entity.Sub
	if told.UserInfo != nil && told.EntityInfo != nil {
		name, whom = told.UserInfo.CPUID_FullName, told.EntityInfo.CPEntID
	}
	lines := []string{name + " signed in", fmt.Sprintf("for %s (%s)", cmp.Or(entity.Attributes.Entity, whom), whom)}
	add := func(service, client string, found rows) {
		for _, row := range found.Rows {
			lines = append(lines, fmt.Sprintf("may act as %s at %s%s until %s", row.CPRole, service, client, row.EndDate))
		}
	}
	for _, service := range append(userinfo.Own.Result.Services, userinfo.AuthInfo.Result.Services...) {
		add(service.ID, "", service.Own)
	}
	for _, service := range append(userinfo.Others.Result.Services, userinfo.TPAuthInfo.Result.Services...) {
		for _, client := range service.Others.Clients {
			add(service.ID, " for "+client.ID, client.Own)
		}
	}
	return lines
}

// A web page to try it with.

func page(answer http.ResponseWriter, status int, lines ...string) {
	answer.Header().Set("Content-Type", "text/html; charset=utf-8")
	answer.Header().Set("Cache-Control", "no-store")
	answer.WriteHeader(status)
	fmt.Fprint(answer, "<!doctype html><title>Go example</title><ul>")
	for _, line := range lines {
		fmt.Fprint(answer, "<li>", html.EscapeString(line))
	}
	fmt.Fprint(answer, `</ul><p><a href="/login">Sign in</a>`)
}

func refused(answer http.ResponseWriter, err error) {
	status, reason, told := http.StatusBadGateway, err.Error(), ""
	if found, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		reason, told = found.ErrorCode, found.ErrorDescription
	}
	if reason == "access_denied" {
		status = http.StatusForbidden
	}
	fmt.Println(reason+":", told)
	page(answer, status, "Not signed in ("+reason+")", told)
}

func main() {
	loadKeys()
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) { page(answer, 200, "Nobody is signed in") })
	http.HandleFunc("/login", func(answer http.ResponseWriter, request *http.Request) {
		tried, address, err := begin()
		if err != nil {
			refused(answer, err)
			return
		}
		cookie := rand.Text()
		attempts.Store(cookie, tried)
		// On https: Secure, and a name that begins with __Host-.
		http.SetCookie(answer, &http.Cookie{Name: "go_rp", Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
		http.Redirect(answer, request, address, http.StatusSeeOther)
	})
	http.HandleFunc("/callback", func(answer http.ResponseWriter, request *http.Request) {
		cookie, err := request.Cookie("go_rp")
		if err != nil {
			cookie = &http.Cookie{}
		}
		tried, known := attempts.LoadAndDelete(cookie.Value) // once
		if !known {
			page(answer, http.StatusBadRequest, "This browser started no sign-in, or finished it already")
			return
		}
		told, userinfo, err := finish(request.Context(), tried.(*attempt), request.URL.Query())
		if err != nil {
			refused(answer, err)
			return
		}
		lines := summary(told, userinfo)
		fmt.Println(strings.Join(lines, "\n  ")) // here your own session for this person begins
		page(answer, 200, lines...)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}

func loadKeys() {
	if _, err := os.Stat(keyFile); errors.Is(err, os.ErrNotExist) {
		for name, kind := range map[string][2]string{"signing": {"sig", "ES256"}, "encryption": {"enc", "ECDH-ES+A256KW"}} {
			fresh := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
			keys[name] = jose.JSONWebKey{Key: fresh, KeyID: kind[0] + "-" + rand.Text()[:8], Use: kind[0], Algorithm: kind[1]}
		}
		must(0, os.WriteFile(keyFile, must(json.MarshalIndent(keys, "", "  ")), 0o600))
	}
	must(0, json.Unmarshal(must(os.ReadFile(keyFile)), &keys))
	signing, encryption := keys["signing"], keys["encryption"]
	public := must(json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{signing.Public(), encryption.Public()}}))
	must(0, os.WriteFile(keyFile+".public", public, 0o644))
	marked := ""
	if legacy { // the same client may use both; legacy has a last day
		marked = " \\\n    --generation current --generation legacy --legacy-until 2099-12-31"
	}
	fmt.Printf(`Register this relying party once:

  corpid client add %s --name "Go example" --service HARBOUR-PERMIT \
    --redirect-uri %s --jwks %s.public%s

%s

Then open http://127.0.0.1:%s
`, clientID, callback, keyFile, marked, public, port)
}

func setting(name, otherwise string) string { return cmp.Or(os.Getenv(name), otherwise) }

func hashed(text string) string {
	digest := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(digest[:])
}

// body is what CorpID answered, or its refusal.
func body(response *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if response.StatusCode >= 400 {
		told := struct {
			Error       string
			Description string `json:"error_description"`
		}{Error: response.Status}
		_ = json.Unmarshal(content, &told) // otherwise the status says enough
		return nil, &oauth2.RetrieveError{ErrorCode: told.Error, ErrorDescription: told.Description}
	}
	return content, err
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
