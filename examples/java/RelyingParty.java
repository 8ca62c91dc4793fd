// A relying party of CorpID in one file, on Nimbus' OAuth 2.0 SDK with OpenID Connect extensions.
//
//     mvn -q dependency:copy-dependencies && java -cp 'lib/*' RelyingParty.java
//
// Its first run makes two key pairs and prints the command that registers it. docs/relying-parties.md is the guide.

import com.nimbusds.jose.*;
import com.nimbusds.jose.jwk.*;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.jose.jwk.source.*;
import com.nimbusds.jose.proc.*;
import com.nimbusds.jose.util.JSONObjectUtils;
import com.nimbusds.jwt.*;
import com.nimbusds.jwt.proc.*;
import com.nimbusds.oauth2.sdk.*;
import com.nimbusds.oauth2.sdk.auth.*;
import com.nimbusds.oauth2.sdk.dpop.DefaultDPoPProofFactory;
import com.nimbusds.oauth2.sdk.http.*;
import com.nimbusds.oauth2.sdk.id.*;
import com.nimbusds.oauth2.sdk.pkce.*;
import com.nimbusds.oauth2.sdk.token.AccessToken;
import com.nimbusds.openid.connect.sdk.*;
import com.nimbusds.openid.connect.sdk.Nonce;
import com.nimbusds.openid.connect.sdk.op.OIDCProviderMetadata;
import com.nimbusds.openid.connect.sdk.validators.*;
import com.sun.net.httpserver.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.*;
import java.util.concurrent.*;

public class RelyingParty {
  static final String ISSUER = setting("ISSUER", "http://localhost:8400"); // where `corpid demo` is
  static final ClientID CLIENT_ID = new ClientID(setting("CLIENT_ID", "java-rp"));
  static final int PORT = Integer.parseInt(setting("PORT", "8414"));
  static final Path KEYS = Path.of(setting("KEYS", "keys.json")); // private: keep it as you keep a password
  static final boolean LEGACY = setting("GENERATION", "current").equals("legacy"); // until the client's last day
  static final URI CALLBACK = URI.create("http://127.0.0.1:" + PORT + "/callback"); // compared character by character
  // All that changes between the two: where roles are, and what is asked. `current` also pushes it, and binds tokens.
  static final String RESOURCE = LEGACY ? "authorization-info_endpoint" : "userinfo_endpoint";
  static final String SCOPE = "openid authinfo tpauthinfo" + (LEGACY ? "" : " user.name entity.basic_profile.name");

  static final Map<String, Attempt> attempts = new ConcurrentHashMap<>(); // drop old ones, and share them among servers
  static ECKey signing, encryption; // one says who we are, one decrypts ID tokens; CorpID gets the public halves
  static CorpID corpid; // made once: it holds CorpID's metadata and keys, and asks for new keys by itself

  record Attempt(State state, Nonce nonce, CodeVerifier verifier, ECKey key) {}

  record CorpID(OIDCProviderMetadata metadata, URI resource, IDTokenValidator idTokens, ConfigurableJWTProcessor<SecurityContext> userinfo) {}

  static synchronized CorpID connect() throws Exception {
    if (corpid != null) return corpid;
    var metadata = OIDCProviderMetadata.resolve(new Issuer(ISSUER)); // its issuer must be ours
    JWKSource<SecurityContext> published = JWKSourceBuilder.create(metadata.getJWKSetURI().toURL()).build();
    var verify = new JWSVerificationKeySelector<>(JWSAlgorithm.ES256, published); // and nothing else
    var wrap = JWEAlgorithm.parse(encryption.getAlgorithm().getName());
    var key = encryption.toECPrivateKey();
    JWEKeySelector<SecurityContext> decrypt = (header, context) -> header.getAlgorithm().equals(wrap) ? List.of(key) : List.of();
    var userinfo = new DefaultJWTProcessor<SecurityContext>();
    userinfo.setJWSKeySelector(verify);
    userinfo.setJWTClaimsSetVerifier(new DefaultJWTClaimsVerifier<>(CLIENT_ID.getValue(),
        new JWTClaimsSet.Builder().issuer(ISSUER).build(), Set.of("sub", "exp", "iat")));
    var resource = URI.create((String) metadata.toJSONObject().get(RESOURCE));
    return corpid = new CorpID(metadata, resource, new IDTokenValidator(new Issuer(ISSUER), CLIENT_ID, verify, decrypt), userinfo);
  }

  /** Who we are, made for each request. The audience is the issuer, whatever the endpoint. */
  static ClientAuthentication ourselves() throws Exception {
    var now = new Date();
    var claims = new JWTAuthenticationClaimsSet(CLIENT_ID, List.of(new Audience(ISSUER)), new Date(now.getTime() + 60_000), null, now, new JWTID());
    var algorithm = JWSAlgorithm.parse(signing.getAlgorithm().getName());
    return new PrivateKeyJWT(claims, algorithm, signing.toPrivateKey(), signing.getKeyID(), null);
  }

  /** Asks CorpID, with a proof of the sign-in's key; once more if CorpID wants its own nonce in the proof. */
  static HTTPResponse ask(Callable<HTTPRequest> made, ECKey key, AccessToken token) throws Exception {
    Nonce nonce = null;
    while (true) {
      var request = made.call();
      request.setConnectTimeout(10_000);
      request.setReadTimeout(10_000);
      if (key != null) {
        var proofs = new DefaultDPoPProofFactory(key, JWSAlgorithm.ES256);
        request.setDPoP(proofs.createDPoPJWT(request.getMethod().name(), request.getURI(), token, nonce));
      }
      var response = request.send();
      if (response.indicatesSuccess() || nonce != null || response.getDPoPNonce() == null) return response;
      nonce = response.getDPoPNonce();
    }
  }

  /** Makes the request, and keeps under the cookie what the callback needs. Returns where to send the browser. */
  static URI begin(String cookie) throws Exception {
    var server = connect().metadata();
    var key = LEGACY ? null : new ECKeyGenerator(Curve.P_256).generate(); // one key for the whole sign-in
    var attempt = new Attempt(new State(), new Nonce(), new CodeVerifier(), key);
    attempts.put(cookie, attempt);
    var request = new AuthenticationRequest.Builder(ResponseType.CODE, Scope.parse(SCOPE), CLIENT_ID, CALLBACK)
        .endpointURI(server.getAuthorizationEndpointURI()).state(attempt.state()).nonce(attempt.nonce())
        .codeChallenge(attempt.verifier(), CodeChallengeMethod.S256);
    if (LEGACY) return request.build().toURI(); // the request is the query of the address
    var full = request.customParameter("authentication_context_type", "APP_AUTHENTICATION_DEFAULT").build();
    var pushed = PushedAuthorizationResponse.parse(ask(
        () -> new PushedAuthorizationRequest(server.getPushedAuthorizationRequestEndpointURI(), ourselves(), full).toHTTPRequest(), key, null));
    if (!pushed.indicatesSuccess()) throw new GeneralException(pushed.toErrorResponse().getErrorObject());
    return new AuthorizationRequest.Builder(pushed.toSuccessResponse().getRequestURI(), CLIENT_ID)
        .endpointURI(server.getAuthorizationEndpointURI()).build().toURI();
  }

  /** Redeems the code and asks what the person may do. All checks are in here; a failed one throws. */
  static List<String> finish(Attempt attempt, URI callback) throws Exception {
    var found = connect();
    var answer = AuthenticationResponseParser.parse(callback);
    if (!attempt.state().equals(answer.getState())) throw new GeneralException("the state is of another sign-in");
    if (found.metadata().supportsAuthorizationResponseIssuerParam() && !new Issuer(ISSUER).equals(answer.getIssuer()))
      throw new GeneralException("the callback is of another provider");
    if (!answer.indicatesSuccess()) throw new GeneralException(answer.toErrorResponse().getErrorObject());
    var grant = new AuthorizationCodeGrant(answer.toSuccessResponse().getAuthorizationCode(), CALLBACK, attempt.verifier());
    var redeemed = OIDCTokenResponseParser.parse(ask(
        () -> new TokenRequest.Builder(found.metadata().getTokenEndpointURI(), ourselves(), grant).build().toHTTPRequest(), attempt.key(), null));
    if (!redeemed.indicatesSuccess()) throw new GeneralException(redeemed.toErrorResponse().getErrorObject());
    var tokens = ((OIDCTokenResponse) redeemed.toSuccessResponse()).getOIDCTokens();
    if (!(tokens.getIDToken() instanceof EncryptedJWT)) throw new GeneralException("the ID token is not encrypted");
    var claims = found.idTokens().validate(tokens.getIDToken(), attempt.nonce());
    if (claims.getAccessTokenHash() == null) throw new GeneralException("the ID token has no at_hash");
    AccessTokenValidator.validate(tokens.getAccessToken(), JWSAlgorithm.ES256, claims.getAccessTokenHash());
    var token = tokens.getAccessToken(); // DPoP, or in legacy Bearer
    var response = ask(() -> new UserInfoRequest(found.resource(), token).toHTTPRequest(), attempt.key(), token);
    if (!response.indicatesSuccess()) throw new GeneralException(UserInfoErrorResponse.parse(response).getErrorObject());
    var userinfo = found.userinfo().process(response.getBody(), null); // a signed JWT, too
    if (!claims.getSubject().getValue().equals(userinfo.getSubject())) throw new GeneralException("userinfo is about somebody else");
    return summary(claims.toJSONObject(), userinfo.toJSONObject());
  }

  @SuppressWarnings("unchecked")
  static <T> T at(Object from, T otherwise, String... path) {
    for (var name : path) from = from instanceof Map<?, ?> members ? members.get(name) : null;
    return from == null ? otherwise : (T) from;
  }

  /** `sub` names the person, and `entity` whom they act for; with `subject: entity` they are in `act` and `sub`. */
  static List<String> summary(Map<String, Object> claims, Map<String, Object> userinfo) {
    Object person = at(claims, claims, "act"), entity = at(claims, claims, "entity");
    // Legacy packs the person into `sub`, and describes both in userInfo and entityInfo; the blocks are the same.
    String who = at(claims, at(person, at(person, "", "sub"), "sub_attributes", "name"), "userInfo", "CPUID_FullName");
    String whom = at(claims, LEGACY ? "" : at(entity, "", "sub"), "entityInfo", "CPEntID");
    var lines = new ArrayList<>(List.of(who + " signed in", "for " + at(entity, whom, "sub_attributes", "entity_name") + " (" + whom + ")"));
    for (var block : List.of("auth_info", "AuthInfo", "tp_auth_info", "TPAuthInfo"))
      for (var service : at(userinfo, List.of(), block, "Result_Set", "ESrvc_Result"))
        for (var result : at(service, List.of(service), "Auth_Set", "TP_Auth")) // an own role has no client
          for (var row : at(result, List.of(), "Auth_Result_Set", "Row"))
            lines.add("may act as " + at(row, "", "CPRole") + " at " + at(service, "", "CPESrvcID")
                + (result == service ? "" : " for " + at(result, "", "CP_Clnt_ID")) + " until " + at(row, "", "EndDate"));
    return lines;
  }

  // A web page to try it with.

  static void serve(HttpExchange exchange) throws java.io.IOException {
    var lines = List.of("Nobody is signed in");
    int status = 200;
    try {
      if (exchange.getRequestURI().getPath().equals("/login")) {
        var cookie = new State().getValue();
        exchange.getResponseHeaders().set("Location", begin(cookie).toString());
        exchange.getResponseHeaders().set("Set-Cookie", "java_rp=" + cookie + "; HttpOnly; SameSite=Lax; Path=/"); // on https: Secure
        status = 303;
      } else if (exchange.getRequestURI().getPath().equals("/callback")) {
        var sent = Objects.requireNonNullElse(exchange.getRequestHeaders().getFirst("Cookie"), "");
        var cookie = Arrays.stream(sent.split("; ")).filter(each -> each.startsWith("java_rp=")).findFirst().orElse("java_rp=");
        var attempt = attempts.remove(cookie.substring("java_rp=".length())); // once
        if (attempt == null) throw new GeneralException("this browser started no sign-in, or finished it already");
        lines = finish(attempt, CALLBACK.resolve(exchange.getRequestURI()));
        System.out.println(String.join("\n  ", lines)); // here your own session for this person begins
      }
    } catch (Exception error) { // shown to the developer
      var told = error instanceof GeneralException general ? general.getErrorObject() : null;
      var reason = told == null ? Objects.requireNonNullElse(error.getMessage(), error.getClass().getSimpleName()) : Objects.requireNonNullElse(told.getCode(), "HTTP " + told.getHTTPStatusCode());
      System.out.println(error.getClass().getSimpleName() + ": " + reason);
      status = reason.equals("access_denied") ? 403 : 502;
      lines = List.of("Not signed in (" + reason + ")", told == null ? "" : Objects.requireNonNullElse(told.getDescription(), ""));
    }
    var items = new StringBuilder("<!doctype html><title>Java example</title><ul>");
    for (var line : lines) items.append("<li>").append(line.replace("&", "&amp;").replace("<", "&lt;").replace("\"", "&quot;"));
    var page = items.append("</ul><p><a href=\"/login\">Sign in</a>").toString().getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", "text/html; charset=utf-8");
    exchange.getResponseHeaders().set("Cache-Control", "no-store");
    exchange.sendResponseHeaders(status, page.length);
    exchange.getResponseBody().write(page);
    exchange.close();
  }

  static String setting(String name, String otherwise) {
    return System.getenv().getOrDefault(name, otherwise);
  }

  public static void main(String[] arguments) throws Exception {
    if (Files.notExists(KEYS)) {
      var made = new ECKeyGenerator(Curve.P_256);
      var sign = made.keyUse(KeyUse.SIGNATURE).algorithm(JWSAlgorithm.ES256).keyID("sig-" + new JWTID()).generate();
      var enc = made.keyUse(KeyUse.ENCRYPTION).algorithm(JWEAlgorithm.ECDH_ES_A256KW).keyID("enc-" + new JWTID()).generate();
      Files.createFile(KEYS, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
      Files.writeString(KEYS, JSONObjectUtils.toJSONString(Map.of("signing", sign.toJSONObject(), "encryption", enc.toJSONObject())));
    }
    var keys = JSONObjectUtils.parse(Files.readString(KEYS));
    signing = ECKey.parse(JSONObjectUtils.getJSONObject(keys, "signing"));
    encryption = ECKey.parse(JSONObjectUtils.getJSONObject(keys, "encryption"));
    var jwks = new JWKSet(List.<JWK>of(signing, encryption)).toString(true); // the public halves
    Files.writeString(Path.of(KEYS + ".public"), jwks);
    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", PORT), 0);
    server.createContext("/", RelyingParty::serve);
    server.setExecutor(Executors.newCachedThreadPool());
    server.start();
    // The same client may use both; legacy has a last day.
    var marked = LEGACY ? " \\\n    --generation current --generation legacy --legacy-until 2099-12-31" : "";
    System.out.printf("""
        Register this relying party once:

          corpid client add %s --name "Java example" --service HARBOUR-PERMIT \\
            --redirect-uri %s --jwks %s.public%s

        %s

        Then open http://127.0.0.1:%d
        """, CLIENT_ID, CALLBACK, KEYS, marked, jwks, PORT);
  }
}
