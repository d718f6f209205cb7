// Names of annotations of ingress-nginx that only add comfort, so that none of them is taken for a misspelt one that protects
// (https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations/). Values only.

/** Headgate has them. */
const SERVED: readonly string[] = [
  ...[
    'affinity',
    'app-root',
    'auth-always-set-cookie',
    'auth-cache-duration',
    'auth-cache-key',
    'auth-realm',
  ],
  ...['auth-request-redirect', 'auth-secret-type', 'auth-signin-redirect-param'],
  ...['auth-tls-error-page', 'auth-tls-pass-certificate-to-upstream', 'canary', 'canary-by-cookie'],
  'canary-by-header',
  ...['canary-by-header-pattern', 'canary-by-header-value', 'canary-weight', 'canary-weight-total'],
  ...['cors-expose-headers', 'cors-max-age', 'custom-http-errors', 'default-backend'],
  ...['disable-proxy-intercept-errors', 'enable-cors', 'from-to-www-redirect', 'permanent-redirect'],
  ...['permanent-redirect-code', 'proxy-next-upstream', 'proxy-next-upstream-tries', 'proxy-read-timeout'],
  ...['proxy-send-timeout', 'proxy-ssl-name', 'rewrite-target', 'server-alias', 'session-cookie-domain'],
  ...['session-cookie-expires', 'session-cookie-max-age', 'session-cookie-name', 'session-cookie-path'],
  ...['session-cookie-samesite', 'session-cookie-secure', 'ssl-redirect', 'temporal-redirect'],
  ...['temporal-redirect-code', 'upstream-hash-by', 'upstream-vhost', 'use-regex', 'x-forwarded-prefix'],
];

/** What happens without them, and their names. */
export const WITHOUT_EFFECT: readonly (readonly [here: string, ...names: string[]])[] = [
  ['A client with a cookie stays at its member, whatever canaries say', 'affinity-canary-behavior'],
  ['A cookie leads to its member while it is there, as with `persistent`', 'affinity-mode'],
  [
    'As by default: for each client that comes without the cookie, and whatever the browser',
    ...['session-cookie-change-on-failure', 'session-cookie-conditional-samesite-none'],
    'session-cookie-hash',
  ],
  ['`Server` of members passes', 'allow-backend-server-header'],
  [
    'Connections to the authorization server are kept as those to members',
    ...['auth-keepalive', 'auth-keepalive-requests', 'auth-keepalive-share-vars', 'auth-keepalive-timeout'],
  ],
  [
    'Requests and answers pass through buffers of 16 or 24 KB, and are not held back',
    ...['client-body-buffer-size', 'proxy-buffer-size', 'proxy-buffering', 'proxy-buffers-number'],
    ...['proxy-busy-buffers-size', 'proxy-max-temp-file-size', 'proxy-request-buffering'],
  ],
  ['`Connection` is what HAProxy and the member agree on', 'connection-proxy-header'],
  ['Answers have the headers of members, and `hsts`', 'custom-headers'],
  ['`log` of the class says what is logged', 'enable-access-log', 'enable-rewrite-log'],
  [
    'There are no traces; request ids are [`request-ids`](annotations.md#request-ids)',
    ...['enable-influxdb', 'enable-opentelemetry', 'enable-opentracing', 'opentelemetry-operation-name'],
    ...['opentelemetry-trust-incoming-span', 'opentracing-trust-incoming-span'],
  ],
  ['FastCGI closes by `backend-protocol`', 'fastcgi-index', 'fastcgi-params-configmap'],
  [
    'They say more of an annotation that closes',
    ...['global-rate-limit-ignored-cidrs', 'global-rate-limit-key', 'global-rate-limit-window'],
    ...['limit-rate-after', 'modsecurity-transaction-id', 'ssl-prefer-server-ciphers'],
  ],
  ['`backend-protocol` counts, also in ingress-nginx', 'grpc-backend', 'secure-backends'],
  ['Clients get HTTP/2 by TLS, and no pushes', 'http2-push-preload', 'use-http2'],
  [
    'Limits hold for all clients, without bursts',
    'limit-allowlist',
    'limit-burst-multiplier',
    'limit-whitelist',
  ],
  ['`algorithm` of the Service chooses members', 'load-balance'],
  ['Nothing is mirrored; HTTPRoutes can', 'mirror-host', 'mirror-request-body', 'mirror-target'],
  ['Redirects keep the path as it is', 'preserve-trailing-slash'],
  ['`timeout-connect` of the Service counts', 'proxy-connect-timeout'],
  [
    'Cookies and redirects of members pass unchanged',
    ...['proxy-cookie-domain', 'proxy-redirect-from', 'proxy-redirect-to'],
  ],
  ['Members get HTTP/1.1', 'proxy-http-version'],
  ['The tries have an end, and no common one in time', 'proxy-next-upstream-timeout'],
  ['Members are asked for `proxy-ssl-name`', 'proxy-ssl-server-name'],
  ['Redirects have scheme and host, and no port', 'relative-redirects', 'use-port-in-redirects'],
  ['All that protects must be met, not only one of them', 'satisfy'],
  ['Requests go to members, not to the address of the Service', 'service-upstream'],
  ['The whole Service is chosen from', 'upstream-hash-by-subset', 'upstream-hash-by-subset-size'],
  ['HAProxy keeps connections to members', 'upstream-keepalive-connections'],
];

export const NGINX_COMFORT: readonly string[] = [
  ...SERVED,
  ...WITHOUT_EFFECT.flatMap(([, ...names]) => names),
];
