// A relying party on Spring Security. The argument is its registration (docs/libraries.md). For the run of the tests its
// `main` is also the browser: it prints the address to sign in at, reads the callback, and prints what it learned.

import com.nimbusds.jose.*;
import com.nimbusds.jose.jwk.*;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.jose.jwk.source.*;
import com.nimbusds.jose.proc.*;
import com.nimbusds.jose.util.JSONObjectUtils;
import com.nimbusds.jwt.proc.DefaultJWTProcessor;
import com.nimbusds.oauth2.sdk.auth.JWTAuthenticationClaimsSet;
import com.nimbusds.oauth2.sdk.auth.PrivateKeyJWT;
import com.nimbusds.oauth2.sdk.dpop.DefaultDPoPProofFactory;
import com.nimbusds.oauth2.sdk.id.*;
import com.nimbusds.oauth2.sdk.token.DPoPAccessToken;
import jakarta.servlet.http.HttpServletRequest;
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.nio.file.*;
import java.util.*;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.server.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.*;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.client.endpoint.*;
import org.springframework.security.oauth2.client.oidc.authentication.OidcIdTokenValidator;
import org.springframework.security.oauth2.client.oidc.userinfo.OidcUserService;
import org.springframework.security.oauth2.client.registration.*;
import org.springframework.security.oauth2.client.web.*;
import org.springframework.security.oauth2.core.*;
import org.springframework.security.oauth2.core.endpoint.OAuth2AuthorizationRequest;
import org.springframework.security.oauth2.core.http.converter.OAuth2AccessTokenResponseHttpMessageConverter;
import org.springframework.security.oauth2.core.oidc.user.OidcUser;
import org.springframework.security.oauth2.core.user.DefaultOAuth2User;
import org.springframework.security.oauth2.jwt.*;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.*;
import org.springframework.web.client.RestClient;
import org.springframework.web.util.UriComponentsBuilder;

@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
public class SpringRp {
  static Map<String, Object> rp;

  static boolean is(String member) {
    return Boolean.TRUE.equals(rp.get(member));
  }

  static String text(String member) {
    return (String) rp.get(member);
  }

  // piece
  static ECKey dpop; // one key of this program

  /** Adds a DPoP proof to each request. */
  static final ClientHttpRequestInterceptor PROVING = (request, body, execution) -> {
    try {
      var authorization = request.getHeaders().getFirst("Authorization");
      var token = authorization == null ? null : new DPoPAccessToken(authorization.substring("DPoP ".length()));
      var factory = new DefaultDPoPProofFactory(dpop, JWSAlgorithm.ES256);
      var proof = factory.createDPoPJWT(request.getMethod().name(), request.getURI(), token, null);
      request.getHeaders().set("DPoP", proof.serialize());
    } catch (JOSEException error) {
      throw new IllegalStateException(error);
    }
    return execution.execute(request, body);
  };

  static RestClient http() {
    var made = RestClient.builder().configureMessageConverters(converters -> converters.registerDefaults()
        .addCustomConverter(new OAuth2AccessTokenResponseHttpMessageConverter()));
    return (is("bound") ? made.requestInterceptor(PROVING) : made).build();
  }

  /** Who we are: private_key_jwt, with the issuer as audience. */
  static MultiValueMap<String, String> assertion() {
    try {
      var key = ECKey.parse(JSONObjectUtils.getJSONObject(rp, "signing"));
      var end = new Date(System.currentTimeMillis() + 60_000);
      var us = new JWTAuthenticationClaimsSet(new ClientID(text("client_id")), List.of(new Audience(text("issuer"))), end,
          null, new Date(), new JWTID());
      var algorithm = JWSAlgorithm.parse(key.getAlgorithm().getName());
      var signed = new PrivateKeyJWT(us, algorithm, key.toPrivateKey(), key.getKeyID(), null);
      return MultiValueMap.fromMultiValue(signed.toParameters());
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  @Bean
  ClientRegistrationRepository registrations() {
    var made = ClientRegistrations.fromIssuerLocation(text("issuer")).registrationId("corpid").clientId(text("client_id"))
        .clientAuthenticationMethod(ClientAuthenticationMethod.PRIVATE_KEY_JWT).redirectUri(text("redirect_uri"))
        .scope(((String) parameters().get("scope")).split(" ")).userNameAttributeName("sub")
        .clientSettings(ClientRegistration.ClientSettings.builder().requireProofKey(true).build()).build();
    var resource = (String) made.getProviderDetails().getConfigurationMetadata().get(text("resource")); // of legacy
    var reading = ClientRegistration.withClientRegistration(made).userInfoUri(resource).build();
    return new InMemoryClientRegistrationRepository(reading);
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> parameters() {
    return (Map<String, Object>) rp.get("parameters");
  }

  /** Decrypts what is encrypted, and verifies ES256 alone. */
  static NimbusJwtDecoder decoder(ClientRegistration registration) {
    try {
      var published = JWKSourceBuilder.create(URI.create(registration.getProviderDetails().getJwkSetUri()).toURL()).build();
      var key = ECKey.parse(JSONObjectUtils.getJSONObject(rp, "encryption")).toECPrivateKey();
      var processor = new DefaultJWTProcessor<SecurityContext>();
      processor.setJWSKeySelector(new JWSVerificationKeySelector<>(JWSAlgorithm.ES256, published));
      processor.setJWEKeySelector((header, context) -> List.of(key));
      return new NimbusJwtDecoder(processor);
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  @Bean
  JwtDecoderFactory<ClientRegistration> idTokens() {
    return registration -> {
      var decoder = decoder(registration);
      decoder.setJwtValidator(new OidcIdTokenValidator(registration));
      return decoder;
    };
  }

  /** Userinfo is a signed JWT, of the type that an ID token has; Spring expects JSON. */
  static OidcUserService users() {
    var users = new OidcUserService();
    users.setRetrieveUserInfo(request -> true);
    users.setOauth2UserService(request -> {
      var registration = request.getClientRegistration();
      var token = request.getAccessToken();
      var body = http().get().uri(registration.getProviderDetails().getUserInfoEndpoint().getUri())
          .header("Authorization", token.getTokenType().getValue() + " " + token.getTokenValue()).retrieve().body(String.class);
      try {
        if (!is("userinfo_signed")) return new DefaultOAuth2User(List.of(), JSONObjectUtils.parse(body), "sub");
        var decoder = decoder(registration);
        decoder.setJwtValidator(new OidcIdTokenValidator(registration));
        return new DefaultOAuth2User(List.of(), decoder.decode(body).getClaims(), "sub");
      } catch (JwtException | java.text.ParseException error) {
        throw new OAuth2AuthenticationException(new OAuth2Error("invalid_user_info_response"), error);
      }
    });
    return users;
  }

  /** Spring's resolver, and then a pushed request. */
  record Pushing(OAuth2AuthorizationRequestResolver made, String endpoint) implements OAuth2AuthorizationRequestResolver {
    public OAuth2AuthorizationRequest resolve(HttpServletRequest request) {
      return pushed(made.resolve(request));
    }

    public OAuth2AuthorizationRequest resolve(HttpServletRequest request, String registration) {
      return pushed(made.resolve(request, registration));
    }

    OAuth2AuthorizationRequest pushed(OAuth2AuthorizationRequest request) {
      if (request == null || !is("pushed")) return request;
      var form = assertion();
      UriComponentsBuilder.fromUriString(request.getAuthorizationRequestUri()).build().getQueryParams()
          .forEach((name, values) -> form.add(name, URLDecoder.decode(values.get(0), java.nio.charset.StandardCharsets.UTF_8)));
      var answer = http().post().uri(URI.create(endpoint)).body(form)
          .contentType(org.springframework.http.MediaType.APPLICATION_FORM_URLENCODED).retrieve().body(Map.class);
      var address = UriComponentsBuilder.fromUriString(request.getAuthorizationUri())
          .queryParam("client_id", request.getClientId()).queryParam("request_uri", answer.get("request_uri"));
      return OAuth2AuthorizationRequest.from(request).authorizationRequestUri(address.encode().build().toUriString()).build();
    }
  }

  @Bean
  SecurityFilterChain security(HttpSecurity security, ClientRegistrationRepository registrations) throws Exception {
    var resolver = new DefaultOAuth2AuthorizationRequestResolver(registrations, "/oauth2/authorization");
    resolver.setAuthorizationRequestCustomizer(made -> made.additionalParameters(more -> {
      parameters().forEach((name, value) -> { if (!name.equals("scope")) more.put(name, value); });
    }));
    var redeeming = new RestClientAuthorizationCodeTokenResponseClient();
    redeeming.addParametersConverter(grant -> assertion());
    redeeming.setRestClient(http());
    var metadata = registrations.findByRegistrationId("corpid").getProviderDetails().getConfigurationMetadata();
    var pushing = new Pushing(resolver, (String) metadata.get("pushed_authorization_request_endpoint"));
    return security.authorizeHttpRequests(every -> every.anyRequest().authenticated())
        .oauth2Login(login -> login.authorizationEndpoint(it -> it.authorizationRequestResolver(pushing))
            .redirectionEndpoint(it -> it.baseUri(URI.create(text("redirect_uri")).getPath()))
            .tokenEndpoint(it -> it.accessTokenResponseClient(redeeming))
            .userInfoEndpoint(it -> it.oidcUserService(users())).defaultSuccessUrl("/"))
        .build();
  }
  // end

  @RestController
  static class Page {
    @GetMapping("/")
    Map<String, Object> home(@AuthenticationPrincipal OidcUser user) {
      return Map.of("claims", user.getIdToken().getClaims(), "userinfo", user.getUserInfo().getClaims());
    }
  }

  public static void main(String[] arguments) throws Exception {
    rp = JSONObjectUtils.parse(Files.readString(Path.of(arguments[0])));
    dpop = new ECKeyGenerator(Curve.P_256).generate();
    var application = new SpringApplication(SpringRp.class);
    var started = application.run("--server.port=0", "--spring.main.banner-mode=off", "--logging.level.root=off");
    var home = "http://127.0.0.1:" + ((ServletWebServerApplicationContext) started).getWebServer().getPort();
    var cookies = new CookieManager();
    var browser = HttpClient.newBuilder().cookieHandler(cookies).followRedirects(HttpClient.Redirect.NEVER).build();
    System.out.println(get(browser, home + "/oauth2/authorization/corpid").headers().firstValue("location").orElseThrow());
    var callback = URI.create(new BufferedReader(new InputStreamReader(System.in)).readLine());
    get(browser, home + callback.getRawPath() + "?" + callback.getRawQuery());
    System.out.println(get(browser, home + "/").body());
    started.close();
  }

  static HttpResponse<String> get(HttpClient browser, String address) throws Exception {
    return browser.send(HttpRequest.newBuilder(URI.create(address)).build(), HttpResponse.BodyHandlers.ofString());
  }
}
