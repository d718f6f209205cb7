// What each test of the suite that Traefik made for the move from ingress-nginx finds of Headgate, by what it asks for. The
// annotations are judged by a test as the agent reads them, so that a new one is moved here. Values only.

export const SUITE = {
  repository: 'traefik/ingress-nginx-migration',
  commit: '7aa28daedd80f671248105ae2c803f243ff9e885',
  tests: 308,
} as const;

/** The suite itself, with Headgate in the place of Traefik, beside ingress-nginx on one machine. */
export const RUN = {
  date: '2026-11-29',
  haproxy: '2.6.12',
  /** The version of ingress-nginx, and the nginx that it had. */
  controller: '1.15.1',
  nginx: '1.22.1',
  /** Names, without "Test" at their beginning; all others passed. */
  failed:
    'AddHeaderAlwaysOnError AddHeaderAlwaysOnSuccess AddHeaderInheritance AddHeaderNoAlwaysOnError AddHeaderNoAlwaysOnSuccess AffinityCanaryDefaultReturnsOK AffinityCanaryStickyReturnsOK AllowHeadersValue AllowMethodsValue AuthMapCorrectCredentials AuthMapNoCredentials AuthMapWrongPassword AuthRealm AuthSnippetIfCondition AuthSnippetMoreSetInputHeaders AuthSnippetProxyMethod AuthSnippetProxySetHeader AuthSnippetWithConfigSnippet BodyLimitMBSuffix CorrectCredentials CustomHeaders DefaultCORSPreflightHeaders ExpiresEpoch ExpiresMax ExpiresOff ExposeHeadersOnSimpleRequest ExternalName IfCaseInsensitiveRegexMatch IfDirectiveReturn IfHeaderEqualMatch IfNegativeRegexMatch IfRegexCaptureGroup IfRegexMatch IfVariableCheck KnownUnsupportedAnnotation_DenylistBehaviorDiffers LocationCaseInsensitiveRegexMatch LocationCaseInsensitiveRegexMatchLowercase LocationCaseInsensitiveRegexNoMatch LocationExactMatch LocationExactNoMatch LocationRegexMatch LocationRegexNoMatch LocationReturn LocationWithHeaders MoreClearHeadersCrossSnippet MoreClearHeadersMultiple MoreClearHeadersSingle MoreClearHeadersWildcard MoreClearInputHeadersSingle MoreClearInputHeadersWildcard MoreSetHeaders MoreSetHeadersAppend MoreSetHeadersClearingWithColon MoreSetHeadersClearingWithoutColon MoreSetHeadersMultiple MoreSetInputHeaders MoreSetInputHeadersClearing MoreSetInputHeadersMultiple MoreSetInputHeadersRestrictExisting MoreSetInputHeadersRestrictMissing NoCredentials PreflightMatchingOrigin ProxySetHeader RewriteBreakFlag RewriteInConfigSnippet RewriteInIfBlock RewriteInIfBlockNoMatch RewriteLastFlag RewriteMultipleCaptureGroups RewriteNoFlagChain RewriteNoMatch RewritePermanentRedirect RewritePreservesQuery RewriteRedirectFlag RewriteSuppressesQuery RewriteURLRedirect SSLRedirectBypassXForwardedProtoPreservesPath SSLRedirectBypassedByXForwardedProto ShortReadTimeoutSlowBackend SimpleGetMatchingOrigin Snippet VarArgSpecific VarArgsAbsent VarArgsPresent VarBestHttpHost VarContentType VarCookie VarCookieAbsent VarDocumentUri VarHost VarHttpHeader VarHttpHeaderAbsent VarIsArgsAbsent VarIsArgsPresent VarProxyAddXForwardedFor VarQueryString VarServerName VarServerPort VarUri VariableInterpolation WrongConfigMap WrongPassword WrongUsername',
} as const;

/** The heading of a column → what stands above its names. */
export const OUTCOMES = {
  same: 'The answer is that of ingress-nginx.',
  differs: 'It is served, and the answer is another one.',
  ignored: 'It is served; an annotation has no effect, and an Event names it.',
  closed: 'Status 403, because what it asks for protects, or is a snippet, which could.',
} as const;
export type Outcome = keyof typeof OUTCOMES;

export interface Scenario {
  /** Without the prefix of ingress-nginx. Those of a canary and its Ingress are one list; a snippet has the directives in question. */
  readonly asks: Readonly<Record<string, string>>;
  /** One with groups is ImplementationSpecific; default: /, a prefix. */
  readonly path?: string;
  readonly outcome: Outcome;
  /** A phrase; needed by each outcome but `same`, and where an annotation has no effect because Headgate always does what it says. */
  readonly why?: string;
  /** Names, without "Test" at their beginning. */
  readonly tests: string;
}

const ASKED = { 'auth-url': 'http://web.default.svc.cluster.local/' };
const USERS = { 'auth-type': 'basic', 'auth-secret': 'users', 'auth-realm': 'Realm' };
const HASHES =
  'its hashes of passwords (`{SHA}`) cannot be verified by HAProxy, so that no client is let in (403); with `htpasswd -B -C 5` the answers are the same';
const SNIPPET = 'snippets are never read, and this one could restrict who is served';
const COMFORT_SNIPPET = 'snippets are never read; this one only adds to answers';
const TOO_MUCH =
  'what is too much gets 429, ingress-nginx answers 503; there is no burst of five times the rate';
const CONNECT = 'the time to connect is `headgate.io/timeout-connect` of the Service';

export const FEATURES: Readonly<Record<string, readonly Scenario[]>> = {
  'Affinity of canaries': [
    {
      asks: { canary: 'true', 'canary-weight': '50', 'affinity-canary-behavior': 'legacy' },
      outcome: 'same',
      why: 'the part of a canary is chosen for each request, and its answers have no cookie, so that the test passes by chance',
      tests: 'AffinityCanaryLegacyReturnsOK',
    },
    {
      asks: { canary: 'true', 'canary-weight': '50', affinity: 'cookie', 'session-cookie-name': 'route' },
      outcome: 'differs',
      why: 'the cookie keeps a member, and not the choice between canary and Ingress',
      tests: 'AffinityCanaryDefaultReturnsOK',
    },
    {
      asks: {
        canary: 'true',
        'canary-weight': '50',
        affinity: 'cookie',
        'affinity-canary-behavior': 'sticky',
      },
      outcome: 'ignored',
      why: 'the cookie keeps a member, and not the choice between canary and Ingress',
      tests: 'AffinityCanaryStickyReturnsOK AffinityCanaryStickyPreservesRouting',
    },
  ],
  'app-root': [
    { asks: { 'app-root': '/dashboard' }, outcome: 'same', tests: 'AppRoot' },
    {
      asks: { 'app-root': '/login$is_args$args' },
      outcome: 'same',
      tests: 'AppRootWithVariableInterpolation',
    },
  ],
  'Authorization servers: auth-url': [
    {
      asks: ASKED,
      outcome: 'same',
      tests:
        'AuthAllowPassesThrough AuthDenyReturnsUnauthorized AuthAllowOnSubpath AuthDenyOnSubpath AuthAllowWithCustomHeaders',
    },
    {
      asks: { ...ASKED, 'auth-response-headers': 'X-Auth-User,X-Auth-Role' },
      outcome: 'same',
      tests: 'AuthResponseHeadersForwarded AuthResponseHeaderSpoofing',
    },
    {
      asks: { ...ASKED, 'auth-signin': 'https://login.example.com/start' },
      outcome: 'same',
      tests: 'AuthSigninRedirectsOnDeny AuthSigninRedirectsOnSubpath',
    },
    { asks: { ...ASKED, 'auth-method': 'POST' }, outcome: 'same', tests: 'AuthMethodGET AuthMethodPOST' },
    {
      asks: { ...ASKED, 'auth-snippet': 'add_header X-A b always;' },
      outcome: 'same',
      why: 'nothing of such a snippet reaches the client',
      tests: 'AuthSnippetAddHeader AuthMethodWithSnippet',
    },
    {
      asks: { ...ASKED, 'configuration-snippet': 'add_header X-A b always;' },
      outcome: 'ignored',
      why: COMFORT_SNIPPET,
      tests: 'AuthSnippetWithConfigSnippet',
    },
    {
      asks: { ...ASKED, 'auth-snippet': 'proxy_set_header X-A b;' },
      outcome: 'closed',
      why: 'the server would be asked something else; the method is `auth-method`',
      tests:
        'AuthSnippetProxySetHeader AuthSnippetProxyMethod AuthSnippetIfCondition AuthSnippetMoreSetInputHeaders Snippet AuthSnippet',
    },
  ],
  'Bodies and buffers': [
    {
      asks: { 'proxy-body-size': '1k' },
      outcome: 'same',
      tests:
        'SmallBodyWithinLimit LargeBodyExceedsLimit LargeBodyUnlimited VeryLargeBodyUnlimited ExactBoundaryBody',
    },
    {
      asks: { 'proxy-body-size': '1m' },
      outcome: 'differs',
      why: 'a client that is still sending may lose the connection before it reads 413',
      tests: 'BodyLimitMBSuffix',
    },
    {
      asks: { 'proxy-buffering': 'off', 'proxy-request-buffering': 'off' },
      outcome: 'same',
      why: 'HAProxy passes bodies on as they come',
      tests: 'BufferingOffSmallBody BufferingOffLargeBody',
    },
    {
      asks: { 'client-body-buffer-size': '16k', 'proxy-buffer-size': '8k', 'proxy-buffers-number': '8' },
      outcome: 'same',
      why: 'there are no buffers for whole bodies',
      tests:
        'BufferConfigNormalRequest BufferConfigSmallBody BufferConfigLargeBody ClientBodyBufferWithinBuffer ClientBodyBufferExceedsBuffer',
    },
  ],
  Canaries: [
    {
      asks: { canary: 'true', 'canary-weight': '200', 'canary-weight-total': '200' },
      outcome: 'same',
      tests: 'WeightAll WeightNone WeightTotal',
    },
    {
      asks: { canary: 'true', 'canary-by-header': 'X-Canary', 'canary-weight': '100' },
      outcome: 'same',
      tests: 'Header HeaderWeight',
    },
    {
      asks: { canary: 'true', 'canary-by-header': 'X-Canary', 'canary-by-header-value': 'next' },
      outcome: 'same',
      tests: 'HeaderValue',
    },
    {
      asks: { canary: 'true', 'canary-by-header': 'X-Canary', 'canary-by-header-pattern': '^(lab|staging)$' },
      outcome: 'same',
      tests: 'HeaderPattern',
    },
    {
      asks: { canary: 'true', 'canary-by-cookie': 'next' },
      outcome: 'same',
      tests: 'Cookie',
    },
  ],
  'Client certificates': [
    {
      asks: { 'auth-tls-secret': 'default/clients', 'auth-tls-verify-client': 'on' },
      outcome: 'differs',
      why: 'without a certificate of the authority the handshake fails; ingress-nginx answers 400',
      tests: 'ClientCertRequired InvalidClientCert',
    },
    {
      asks: { 'auth-tls-secret': 'default/clients', 'auth-tls-verify-client': 'optional' },
      outcome: 'same',
      tests: 'ClientCertOptional ClientCertOff',
    },
    {
      asks: { 'auth-tls-secret': 'default/clients', 'auth-tls-pass-certificate-to-upstream': 'true' },
      outcome: 'same',
      tests: 'PassCertToUpstream',
    },
  ],
  'Cross-origin requests': [
    {
      asks: {
        'enable-cors': 'true',
        'cors-allow-origin': 'https://app.example.com',
        'cors-allow-methods': 'GET,POST,PUT',
        'cors-allow-headers': 'Content-Type,Authorization',
        'cors-allow-credentials': 'true',
        'cors-max-age': '7200',
        'cors-expose-headers': 'X-Request-ID',
      },
      outcome: 'same',
      why: 'lists have blanks after their commas, which some of the tests compare',
      tests:
        'PreflightMatchingOrigin PreflightNonMatchingOrigin SimpleGetMatchingOrigin SimpleGetNonMatchingOrigin AllowMethodsValue AllowHeadersValue MaxAgeValue ExposeHeadersOnSimpleRequest CredentialsFalse PreflightStatusCode',
    },
    { asks: { 'enable-cors': 'true' }, outcome: 'same', tests: 'DefaultCORSAllowOriginWildcard' },
    {
      asks: { 'enable-cors': 'true' },
      outcome: 'differs',
      why: 'origin `*` gets no credentials, which browsers refuse with it',
      tests: 'DefaultCORSPreflightHeaders',
    },
  ],
  'Error pages': [
    {
      asks: { 'custom-http-errors': '404,503', 'default-backend': 'web' },
      outcome: 'same',
      tests:
        'NonErrorStatusPassesThrough NonErrorBodyPassesThrough 404TriggersCustomErrorPage 503TriggersCustomErrorPage 404StatusCodePreserved 503StatusCodePreserved UnlistedErrorCodeNotIntercepted 404WithDifferentMethods',
    },
    {
      asks: { 'custom-http-errors': '404,503' },
      outcome: 'differs',
      why: 'there is no default backend of all: the class has the pages, and without one for the status clients get the status alone',
      tests: 'NoBackend404 NoBackendNonError',
    },
  ],
  ExternalName: [
    {
      asks: {},
      outcome: 'differs',
      why: 'such a Service has no endpoints, and its requests get 503',
      tests: 'ExternalName',
    },
  ],
  'Headers of answers': [
    {
      asks: { 'custom-headers': 'default/headers' },
      outcome: 'ignored',
      why: 'an HTTPRoute has `ResponseHeaderModifier`',
      tests: 'CustomHeaders WrongConfigMap',
    },
  ],
  'Hosts, names and redirects': [
    {
      asks: { 'permanent-redirect': 'https://example.com/new', 'permanent-redirect-code': '308' },
      outcome: 'same',
      tests:
        'PermanentRedirectStatus PermanentRedirectLocation PermanentRedirectCustomCode PermanentRedirectCustomCodeLocation PermanentRedirectPreservesMethod',
    },
    {
      asks: { 'temporal-redirect': 'https://example.com/now', 'temporal-redirect-code': '307' },
      outcome: 'same',
      tests:
        'TemporalRedirectStatus TemporalRedirectLocation TemporalRedirectCustomCode TemporalRedirectCustomCodeLocation TemporalPrecedenceOverPermanent',
    },
    {
      asks: { 'from-to-www-redirect': 'true' },
      outcome: 'same',
      tests:
        'NonWWWHostServesNormally WWWToNonWWWRedirect WWWHostServesNormally NonWWWToWWWRedirect WWWRedirectPreservesPath',
    },
    {
      asks: { 'server-alias': 'a.example,b.example' },
      outcome: 'same',
      tests:
        'PrimaryHostServesNormally AliasHostServesContent AliasHostOnSubpath NonAliasHostReturns404 MultipleAliases',
    },
    {
      asks: { 'upstream-vhost': 'backend.internal' },
      outcome: 'same',
      tests:
        'UpstreamVhostOverridesHost NoVhostUsesOriginalHost UpstreamVhostOnSubpath UpstreamVhostPreservesOtherHeaders',
    },
  ],
  'Limits of requests': [
    {
      asks: { 'limit-rps': '10' },
      outcome: 'same',
      tests: 'RPSNormalRequest RPSOnSubpath RPSPreservesHeaders',
    },
    {
      asks: { 'limit-rps': '1' },
      outcome: 'differs',
      why: TOO_MUCH,
      tests: 'RPSExceedLimit',
    },
    {
      asks: { 'limit-rps': '10', 'limit-rpm': '60' },
      outcome: 'same',
      tests: 'RPMNormalRequest BothRPSAndRPM',
    },
    { asks: { 'limit-rpm': '1' }, outcome: 'differs', why: TOO_MUCH, tests: 'RPMExceedLimit' },
  ],
  Members: [
    {
      asks: { 'service-upstream': 'false', 'backend-protocol': 'HTTP' },
      outcome: 'same',
      why: 'pods are the members',
      tests:
        'NoServiceUpstreamReturnsOK ServiceUpstreamFalseReturnsOK ServiceUpstreamFalseMatchesNoAnnotation BackendProtocolHTTPReturnsOK NoBackendProtocolReturnsOK BackendProtocolHTTPMatchesDefault BackendProtocolHTTPOnSubpath BackendProtocolHTTPPreservesHeaders',
    },
    {
      asks: { 'service-upstream': 'true' },
      outcome: 'ignored',
      why: 'pods are the members in any case',
      tests:
        'ServiceUpstreamReturnsOK ServiceUpstreamOnSubpath ServiceUpstreamPreservesHeaders ServiceUpstreamAndNoUpstreamBothServe',
    },
    {
      asks: { 'backend-protocol': 'HTTPS' },
      outcome: 'differs',
      why: 'a member that does not speak TLS gives 503, ingress-nginx answers 502',
      tests: 'BackendProtocolHTTPSFailsConsistently',
    },
    {
      asks: { 'proxy-http-version': '1.1' },
      outcome: 'same',
      why: 'members get HTTP/1.1',
      tests:
        'DefaultHTTPVersionReturnsOK HTTPVersion11ReturnsOK HTTPVersion11OnSubpath HTTPVersion11PreservesHeaders HTTPVersion11MatchesDefault HTTPVersionPOSTRequest',
    },
    {
      asks: {
        'backend-protocol': 'HTTPS',
        'proxy-ssl-secret': 'default/members',
        'proxy-ssl-verify': 'on',
        'proxy-ssl-name': 'members.example',
      },
      outcome: 'same',
      tests:
        'ProxySSLSecretBasic ProxySSLSecretBasicOnSubpath ProxySSLSecretBasicPOST ProxySSLVerifyOff ProxySSLVerifyOnWithCA ProxySSLVerifyOnWithCAOnSubpath ProxySSLName ProxySSLSecretPreservesHeaders',
    },
    {
      asks: {
        'backend-protocol': 'HTTPS',
        'proxy-ssl-secret': 'default/members',
        'proxy-ssl-server-name': 'on',
      },
      outcome: 'ignored',
      why: 'members are asked for `proxy-ssl-name`, and without it for no name',
      tests: 'ProxySSLServerName',
    },
    { asks: {}, outcome: 'same', tests: 'NoUpstreamHashByReturnsOK' },
    {
      asks: { 'upstream-hash-by': '$request_uri' },
      outcome: 'same',
      tests:
        'UpstreamHashByReturnsOK UpstreamHashByConsistentRouting UpstreamHashByOnSubpath UpstreamHashByPreservesHeaders',
    },
  ],
  Passwords: [
    {
      asks: USERS,
      outcome: 'differs',
      why: HASHES,
      tests: 'NoCredentials CorrectCredentials WrongPassword WrongUsername AuthRealm',
    },
    {
      asks: { ...USERS, 'auth-secret-type': 'auth-map' },
      outcome: 'differs',
      why: HASHES,
      tests: 'AuthMapNoCredentials AuthMapCorrectCredentials AuthMapWrongPassword',
    },
  ],
  Paths: [
    {
      asks: { 'rewrite-target': '/$2', 'use-regex': 'true' },
      path: '/app(/|$)(.*)',
      outcome: 'same',
      tests:
        'SimpleRewrite SimpleRewriteSubpath CaptureGroupRewrite CaptureGroupRewriteRoot CaptureGroupRewriteDeepPath',
    },
    {
      asks: { 'rewrite-target': '/rewritten' },
      outcome: 'same',
      tests: 'NoRegexRewriteBehavior ExactPathRewrite',
    },
    {
      asks: { 'rewrite-target': 'https://other.example/$1' },
      path: '/original/(.*)',
      outcome: 'same',
      tests: 'FullPathRewriteNoRegexPath FullPathRewriteWithRegexPath',
    },
    {
      asks: { 'x-forwarded-prefix': '/api', 'rewrite-target': '/$1', 'use-regex': 'true' },
      path: '/(.*)',
      outcome: 'same',
      tests:
        'XForwardedPrefixSet NoXForwardedPrefix XForwardedPrefixOnSubpath XForwardedPrefixPreservesHeaders XForwardedPrefixNested',
    },
  ],
  'Ranges of clients': [
    {
      asks: { 'whitelist-source-range': '10.0.0.0/8,0.0.0.0/0' },
      outcome: 'same',
      tests:
        'AllowAllAccess DenyNonWhitelistedIP DenyResponseBody AllowAllWithDifferentPaths MultipleCIDRAllowAccess MultipleCIDRStatusMatch',
    },
    { asks: { 'allowlist-source-range': '0.0.0.0/0' }, outcome: 'same', tests: 'AllowlistAllAccess' },
    {
      asks: { 'allowlist-source-range': '192.0.2.0/24', 'whitelist-source-range': '0.0.0.0/0' },
      outcome: 'closed',
      why: 'two lists that differ; the test finds 403, as in ingress-nginx',
      tests: 'AllowlistPrecedenceDeny AllowlistPrecedenceStatusMatch',
    },
    {
      asks: { 'denylist-source-range': '0.0.0.0/0' },
      outcome: 'same',
      why: 'the test wants what Traefik does, which lets all in',
      tests: 'KnownUnsupportedAnnotation_DenylistBehaviorDiffers',
    },
  ],
  Retries: [
    { asks: {}, outcome: 'same', tests: 'DefaultRetryStatusMatch DefaultRetryOnSubpath DefaultRetryPOST' },
    {
      asks: { 'proxy-next-upstream': 'off' },
      outcome: 'same',
      tests:
        'RetryDisabledStatusMatch RetryDisabledOnSubpath RetryDisabledPOST RetryDisabledPreservesHeaders',
    },
    {
      asks: { 'proxy-next-upstream-tries': '1' },
      outcome: 'same',
      tests: 'RetryTriesStatusMatch RetryTriesOnSubpath RetryTriesPOST',
    },
    {
      asks: {
        'proxy-next-upstream': 'error timeout http_503',
        'proxy-next-upstream-tries': '3',
        'proxy-body-size': '1k',
      },
      outcome: 'same',
      tests: 'RetryBodyLimitWithinLimit RetryBodyLimitExceedsLimit RetryFlakyBufferingOnRecovers',
    },
    {
      asks: {
        'proxy-next-upstream': 'error timeout http_503',
        'proxy-next-upstream-tries': '3',
        'proxy-request-buffering': 'off',
      },
      outcome: 'same',
      why: "a body that does not fit into HAProxy's buffer is sent once in any case",
      tests: 'RetryFlakyBufferingOffSuppresses RetryFlakyBufferingOffNoBodyRecovers',
    },
    {
      asks: { 'proxy-next-upstream': 'error timeout http_503', 'proxy-next-upstream-timeout': '5' },
      outcome: 'ignored',
      why: 'only the number of tries is limited',
      tests:
        'CustomRetryStatusMatch CustomRetryOnSubpath CustomRetryPOST CustomRetryPreservesHeaders RetryTimeoutStatusMatch RetryTimeoutOnSubpath RetryTimeoutPOST RetryTimeoutPreservesHeaders',
    },
  ],
  'Session cookies': [
    {
      asks: { affinity: 'cookie' },
      outcome: 'same',
      tests: 'StickySessionWithCookie DefaultCookiePresent DefaultCookiePath',
    },
    {
      asks: {
        affinity: 'cookie',
        'session-cookie-name': 'route',
        'session-cookie-path': '/app',
        'session-cookie-samesite': 'Strict',
        'session-cookie-secure': 'true',
        'session-cookie-max-age': '3600',
        'session-cookie-domain': '.example.com',
      },
      outcome: 'same',
      tests:
        'CustomCookieName CustomCookieSecure CustomCookiePath CustomCookieSameSite CustomCookieMaxAge ExtendedCookieDomain',
    },
    {
      asks: { affinity: 'cookie', 'session-cookie-expires': '172800' },
      outcome: 'same',
      why: 'it is `Max-Age`',
      tests: 'ExtendedCookieExpires',
    },
  ],
  Snippets: [
    {
      asks: { 'configuration-snippet': 'if ($http_x_a ~ b) { more_set_headers "X-A: b"; }' },
      outcome: 'ignored',
      why: COMFORT_SNIPPET,
      tests:
        'IfHeaderEqualMatch IfHeaderEqualNoMatch IfRegexMatch IfRegexNoMatch IfCaseInsensitiveRegexMatch IfCaseInsensitiveRegexNoMatch IfNegativeRegexMatch IfNegativeRegexNoMatch IfVariableCheck IfRegexCaptureGroup IfRegexCaptureGroupNoMatch',
    },
    {
      asks: { 'configuration-snippet': 'if ($request_method = POST) { return 405; }' },
      outcome: 'closed',
      why: SNIPPET,
      tests:
        'VariableInterpolation ProxySetHeader MoreSetInputHeaders MoreSetHeaders IfDirectiveReturn AddHeaderInheritance',
    },
    {
      asks: { 'server-snippet': 'location /a { return 200 b; }' },
      outcome: 'closed',
      why: SNIPPET,
      tests:
        'LocationExactMatch LocationExactNoMatch LocationRegexMatch LocationRegexNoMatch LocationWithHeaders LocationReturn AddHeaderAlwaysOnError AddHeaderNoAlwaysOnError AddHeaderAlwaysOnSuccess AddHeaderNoAlwaysOnSuccess ExpiresEpoch ExpiresMax ExpiresOff MoreSetHeadersAppend MoreSetInputHeadersRestrictExisting MoreSetInputHeadersRestrictMissing LocationCaseInsensitiveRegexMatch LocationCaseInsensitiveRegexMatchLowercase LocationCaseInsensitiveRegexNoMatch',
    },
    {
      asks: { 'configuration-snippet': 'deny all;' },
      outcome: 'closed',
      why: 'the test finds 403, as in ingress-nginx',
      tests: 'DenyAll',
    },
    {
      asks: { 'configuration-snippet': 'proxy_set_header X-Uri $uri;' },
      outcome: 'closed',
      why: 'members could trust a header that clients cannot send past the snippet',
      tests:
        'VarUri VarDocumentUri VarHost VarServerName VarArgsPresent VarArgsAbsent VarQueryString VarIsArgsPresent VarIsArgsAbsent VarArgSpecific VarContentType VarCookie VarCookieAbsent VarHttpHeader VarHttpHeaderAbsent VarServerPort VarBestHttpHost VarProxyAddXForwardedFor',
    },
    {
      asks: { 'configuration-snippet': 'more_set_input_headers "X-A: b";' },
      outcome: 'closed',
      why: 'members could trust a header that clients cannot send past the snippet',
      tests:
        'MoreSetHeadersMultiple MoreSetHeadersClearingWithColon MoreSetHeadersClearingWithoutColon MoreSetInputHeadersMultiple MoreSetInputHeadersClearing MoreClearHeadersSingle MoreClearHeadersMultiple MoreClearHeadersWildcard MoreClearHeadersCrossSnippet MoreClearInputHeadersSingle MoreClearInputHeadersWildcard',
    },
    {
      asks: { 'server-snippet': 'rewrite ^/a/(.*)$ /b/$1 last;' },
      outcome: 'closed',
      why: SNIPPET,
      tests:
        'RewriteLastFlag RewritePermanentRedirect RewriteRedirectFlag RewriteMultipleCaptureGroups RewriteNoFlagChain RewriteURLRedirect RewriteNoMatch RewriteBreakFlag RewriteInConfigSnippet RewritePreservesQuery RewriteSuppressesQuery RewriteInIfBlock RewriteInIfBlockNoMatch',
    },
  ],
  'Time limits': [
    { asks: { 'proxy-send-timeout': '10' }, outcome: 'same', tests: 'SendOnlyNormalRequest' },
    {
      asks: { 'proxy-connect-timeout': '30', 'proxy-read-timeout': '30', 'proxy-send-timeout': '30' },
      outcome: 'ignored',
      why: CONNECT,
      tests:
        'AllTimeoutsNormalRequest AllTimeoutsWithSubpath AllTimeoutsSlowBackendWithinLimit AllTimeoutsPostRequest ConnectOnlyNormalRequest ConnectOnlySlowBackendWithinDefaultReadTimeout ShortReadTimeoutFastRequest',
    },
    {
      asks: { 'proxy-read-timeout': '1', 'proxy-send-timeout': '5' },
      outcome: 'differs',
      why: 'the longer one of both counts: here the five seconds after which the member answers, so that chance decides',
      tests: 'ShortReadTimeoutSlowBackend',
    },
  ],
  TLS: [
    {
      asks: { 'force-ssl-redirect': 'true' },
      outcome: 'same',
      tests:
        'SSLRedirectEnabled SSLRedirectLocationHeader SSLRedirectPreservesPath SSLRedirectPreservesQueryString',
    },
    {
      asks: { 'ssl-redirect': 'true' },
      outcome: 'same',
      tests: 'SSLRedirectDisabled SSLRedirectExplicitWithoutTLS',
    },
    {
      asks: { 'force-ssl-redirect': 'true' },
      outcome: 'differs',
      why: 'port 80 redirects whatever `X-Forwarded-Proto` says',
      tests: 'SSLRedirectBypassedByXForwardedProto SSLRedirectBypassXForwardedProtoPreservesPath',
    },
    {
      asks: {},
      outcome: 'differs',
      why: 'there is no self-signed certificate: a class without a usable one has no port 443; with one the test passes',
      tests: 'TLS',
    },
    {
      asks: { 'ssl-passthrough': 'true', 'force-ssl-redirect': 'true', 'backend-protocol': 'HTTPS' },
      outcome: 'same',
      tests:
        'SSLPassthroughCertificateIsFromBackend SSLPassthroughReturnsOK SSLPassthroughResponseBody SSLPassthroughCertificateWithAnnotations',
    },
  ],
  'Unknown annotations': [
    {
      asks: { 'made-up-for-a-test': 'true' },
      outcome: 'same',
      why: 'it has no effect',
      tests: 'UnknownAnnotation_BothControllersIgnore',
    },
  ],
};
