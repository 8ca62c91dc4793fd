// A relying party of CorpID in one file, on Nimbus' OAuth 2.0 SDK. docs/relying-parties.md is the guide.

import com.nimbusds.jose.*;
import com.nimbusds.jose.jwk.*;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.jose.jwk.source.JWKSourceBuilder;
import com.nimbusds.jose.proc.*;
import com.nimbusds.jose.util.JSONObjectUtils;
import com.nimbusds.jwt.*;
import com.nimbusds.oauth2.sdk.*;
import com.nimbusds.oauth2.sdk.auth.*;
import com.nimbusds.oauth2.sdk.dpop.DefaultDPoPProofFactory;
import com.nimbusds.oauth2.sdk.http.*;
import com.nimbusds.oauth2.sdk.id.*;
import com.nimbusds.oauth2.sdk.pkce.*;
import com.nimbusds.oauth2.sdk.token.*;
import com.nimbusds.openid.connect.sdk.*;
import com.nimbusds.openid.connect.sdk.Nonce;
import com.nimbusds.openid.connect.sdk.op.OIDCProviderMetadata;
import com.nimbusds.openid.connect.sdk.validators.*;
import com.sun.net.httpserver.*;
import java.net.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

public class RelyingParty {
  static final Issuer ISSUER = new Issuer(System.getenv().getOrDefault("ISSUER", "http://localhost:8400"));
  static final ClientID CLIENT = new ClientID(System.getenv().getOrDefault("CLIENT_ID", "java-rp"));
  static final URI HOME = URI.create("http://127.0.0.1:" + System.getenv().getOrDefault("PORT", "8414"));
  static final URI CALLBACK = HOME.resolve("/callback"); // registered, and compared character by character
  static final boolean LEGACY = "legacy".equals(System.getenv().getOrDefault("GENERATION", "current")); // until its last day
  // All that changes between the two. `current` also pushes the request, and binds tokens to a DPoP key.
  static final String RESOURCE = LEGACY ? "authorization-info_endpoint" : "userinfo_endpoint";
  static final String SCOPE = LEGACY ? "openid authinfo tpauthinfo" : "openid authinfo tpauthinfo user.name";

  record Attempt(State state, Nonce nonce, CodeVerifier verifier, ECKey key) {}
  static final Map<String, Attempt> attempts = new ConcurrentHashMap<>(); // drop old ones, and share them among servers
  static ECKey signing, encryption; // one says who we are, one decrypts ID tokens: keep them as you keep a password
  static OIDCProviderMetadata server;
  static IDTokenValidator tokens; // it fetches CorpID's keys, and again if it lacks one

  /** Who we are, made for each request. The audience is the issuer, whatever the endpoint. */
  static ClientAuthentication ourselves() throws Exception {
    var end = new Date(System.currentTimeMillis() + 60_000);
    var us = new JWTAuthenticationClaimsSet(CLIENT, List.of(new Audience(ISSUER)), end, null, new Date(), new JWTID());
    var algorithm = JWSAlgorithm.parse(signing.getAlgorithm().getName());
    return new PrivateKeyJWT(us, algorithm, signing.toPrivateKey(), signing.getKeyID(), null);
  }

  /** Asks CorpID, with a proof of the sign-in's key; once more if CorpID wants its own nonce in the proof. */
  static HTTPResponse ask(Callable<HTTPRequest> made, ECKey key, AccessToken token) throws Exception {
    Nonce nonce = null;
    while (true) {
      var request = made.call();
      request.setReadTimeout(10_000);
      if (!LEGACY) {
        var proof = new DefaultDPoPProofFactory(key, JWSAlgorithm.ES256);
        request.setDPoP(proof.createDPoPJWT(request.getMethod().name(), request.getURI(), token, nonce));
      }
      var response = request.send();
      if (response.indicatesSuccess()) return response;
      check(nonce == null && response.getDPoPNonce() != null, response.getBody() + response.getHeaderMap());
      nonce = response.getDPoPNonce();
    }
  }

  static void check(boolean good, String otherwise) throws GeneralException {
    if (!good) throw new GeneralException(otherwise);
  }

  /** Makes the request, keeps what the callback needs, and sends the browser to CorpID. */
  static String login(HttpExchange exchange) throws Exception {
    var key = new ECKeyGenerator(Curve.P_256).generate(); // one key for the whole sign-in
    var attempt = new Attempt(new State(), new Nonce(), new CodeVerifier(), key);
    var request = new AuthenticationRequest.Builder(ResponseType.CODE, Scope.parse(SCOPE), CLIENT, CALLBACK)
        .endpointURI(server.getAuthorizationEndpointURI()).state(attempt.state()).nonce(attempt.nonce())
        .codeChallenge(attempt.verifier(), CodeChallengeMethod.S256);
    var address = request.build().toURI(); // legacy has the request in the address
    if (!LEGACY) {
      var full = request.customParameter("authentication_context_type", "APP_AUTHENTICATION_DEFAULT").build();
      var push = server.getPushedAuthorizationRequestEndpointURI();
      var answer = ask(() -> new PushedAuthorizationRequest(push, ourselves(), full).toHTTPRequest(), key, null);
      var pushed = PushedAuthorizationSuccessResponse.parse(answer).getRequestURI();
      address = new AuthorizationRequest.Builder(pushed, CLIENT).endpointURI(full.getEndpointURI()).build().toURI();
    }
    var cookie = new State().getValue();
    attempts.put(cookie, attempt);
    exchange.getResponseHeaders().set("Location", address.toString());
    exchange.getResponseHeaders().set("Set-Cookie", "java_rp=" + cookie + "; HttpOnly; SameSite=Lax"); // https: Secure
    return "";
  }

  /** Redeems the code and asks what the person may do. All checks are in here; a failed one throws. */
  static String finish(HttpExchange exchange) throws Exception {
    var cookies = "; " + exchange.getRequestHeaders().getFirst("Cookie");
    var attempt = attempts.remove(cookies.replaceFirst(".*; java_rp=([^;]*).*", "$1")); // once
    var answer = AuthenticationResponseParser.parse(CALLBACK.resolve(exchange.getRequestURI()));
    check(attempt != null && attempt.state.equals(answer.getState()), "this browser started another sign-in, or none");
    check(ISSUER.equals(answer.getIssuer()) || !server.supportsAuthorizationResponseIssuerParam(), "another provider");
    check(answer.indicatesSuccess(), exchange.getRequestURI().getQuery());
    var by = new AuthorizationCodeGrant(answer.toSuccessResponse().getAuthorizationCode(), CALLBACK, attempt.verifier);
    var to = server.getTokenEndpointURI();
    var done = ask(() -> new TokenRequest.Builder(to, ourselves(), by).build().toHTTPRequest(), attempt.key, null);
    var received = OIDCTokenResponse.parse(done).getOIDCTokens();
    var token = received.getAccessToken();
    check(token.getType().equals(LEGACY ? AccessTokenType.BEARER : AccessTokenType.DPOP), "a token of another type");
    check(received.getIDToken() instanceof EncryptedJWT, "the ID token is not encrypted");
    var claims = tokens.validate(received.getIDToken(), attempt.nonce());
    check(claims.getAudience().size() == 1, "the ID token is for others, too");
    AccessTokenValidator.validate(token, JWSAlgorithm.ES256, claims.getAccessTokenHash());
    var resource = URI.create((String) server.toJSONObject().get(RESOURCE));
    var body = ask(() -> new UserInfoRequest(resource, token).toHTTPRequest(), attempt.key(), token).getBody();
    var userinfo = tokens.validate(JWTParser.parse(body), null); // a signed JWT, too
    check(userinfo.getAudience().size() == 1 && claims.getSubject().equals(userinfo.getSubject()), "other userinfo");
    return "Signed in\n" + claims + "\n" + userinfo; // here your own session for this person begins
  }

  static void serve(HttpExchange exchange) throws java.io.IOException {
    String text;
    int status;
    try {
      text = exchange.getRequestURI().getPath().equals("/login") ? login(exchange) : finish(exchange);
      status = text.isEmpty() ? 303 : 200;
    } catch (Exception error) {
      text = "Refused: " + error;
      status = 403;
    }
    exchange.sendResponseHeaders(status, 0);
    exchange.getResponseBody().write(text.getBytes());
    exchange.close();
  }

  public static void main(String[] arguments) throws Exception {
    var keys = JSONObjectUtils.parse(Files.readString(Path.of(System.getenv().getOrDefault("KEYS", "keys.json"))));
    signing = ECKey.parse(JSONObjectUtils.getJSONObject(keys, "signing"));
    encryption = ECKey.parse(JSONObjectUtils.getJSONObject(keys, "encryption"));
    server = OIDCProviderMetadata.resolve(ISSUER); // its issuer must be ours
    var published = JWKSourceBuilder.create(server.getJWKSetURI().toURL()).rateLimited(1_000).build();
    var verify = new JWSVerificationKeySelector<>(JWSAlgorithm.ES256, published); // and nothing else
    var key = encryption.toECPrivateKey();
    tokens = new IDTokenValidator(ISSUER, CLIENT, verify, (header, context) -> List.of(key));
    var listening = HttpServer.create(new InetSocketAddress(HOME.getHost(), HOME.getPort()), 0);
    listening.createContext("/", RelyingParty::serve);
    listening.setExecutor(Executors.newCachedThreadPool());
    listening.start();
    System.out.println("Open " + HOME + "/login");
  }
}
