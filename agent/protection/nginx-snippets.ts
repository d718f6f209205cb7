// Whether a snippet of nginx restricts who is served, or what members believe of a client. Its author's text is never used: one
// that restricts closes, and a directive that is not known could. Pure.

/** Directives that change what is served, and never who is served. */
const HARMLESS = new Set([
  ...['add_header', 'more_set_headers', 'more_clear_headers', 'proxy_hide_header', 'proxy_pass_header'],
  ...['set', 'if', 'break', 'default_type', 'charset', 'expires', 'etag', 'add_trailer'],
  ...['gzip', 'gzip_types', 'gzip_vary', 'gzip_proxied', 'gzip_min_length', 'gzip_comp_level', 'brotli'],
  ...['brotli_types', 'sub_filter', 'sub_filter_once', 'sub_filter_types', 'access_log', 'error_log'],
  ...['log_not_found', 'proxy_buffering', 'proxy_buffers', 'proxy_buffer_size', 'proxy_busy_buffers_size'],
  ...['proxy_request_buffering', 'proxy_http_version', 'proxy_read_timeout', 'proxy_send_timeout'],
  ...['proxy_connect_timeout', 'send_timeout', 'keepalive_timeout', 'proxy_cookie_path'],
  ...['http2_push_preload', 'proxy_cache', 'proxy_cache_valid', 'proxy_cache_key', 'proxy_cache_bypass'],
  ...['proxy_no_cache', 'large_client_header_buffers', 'client_body_buffer_size', 'tcp_nodelay'],
  ...['tcp_nopush', 'sendfile', 'client_header_buffer_size', 'client_header_timeout', 'client_body_timeout'],
  ...['proxy_max_temp_file_size', 'proxy_temp_file_write_size', 'proxy_redirect'],
  ...['chunked_transfer_encoding', 'gzip_disable', 'gzip_buffers', 'gzip_http_version', 'gzip_static'],
  ...['proxy_cache_lock', 'proxy_cache_use_stale', 'proxy_ignore_headers', 'proxy_socket_keepalive'],
  ...['absolute_redirect', 'port_in_redirect', 'server_name_in_redirect', 'server_tokens'],
  ...['keepalive_requests', 'reset_timedout_connection', 'override_charset'],
]);

/** Headers that members get from the load balancer itself, or that say nothing of a client. */
const OF_MEMBERS = new Set([
  ...['host', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto'],
  ...['x-forwarded-scheme', 'x-forwarded-prefix', 'forwarded', 'x-request-id', 'early-data'],
  'l5d-dst-override',
]);

/** Headers that an authorization server gets without the snippet, with the same meaning. */
const OF_QUESTIONS = new Set([
  ...['x-original-url', 'x-original-method', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-host'],
  'x-forwarded-proto',
]);

/** Headers of the connection to a member, with any value, also an empty one. */
const OF_CONNECTIONS = new Set(['accept-encoding', 'connection', 'upgrade']);

/** Has a directive that could restrict. */
export function hasRules(snippet: string): boolean {
  return restricts(snippet, OF_MEMBERS);
}

/** Has a directive that could change what an authorization server is asked, or answers. */
export function asksOtherwise(snippet: string): boolean {
  return restricts(snippet, OF_QUESTIONS);
}

/** Blanks, a comment, a quoted word, the end of a statement, a word. */
const TOKENS = /\s+|#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[;{}]|(?:[^\s;{}\\]|\\.)+|./gs;

/** A redirect between the names of a site: without it, no client is served who was not. */
const BY_HOST = /^\(\$(?:host|http_host|server_name)$/;

function restricts(snippet: string, ownHeaders: ReadonlySet<string>): boolean {
  /** For each open block, true if its condition asks for the host. */
  const blocks: boolean[] = [];
  let words: string[] = [];
  for (const [token] of snippet.matchAll(TOKENS)) {
    if (/^[\s#]/.test(token)) continue;
    if (!/^[;{}]$/.test(token)) {
      words.push(token);
      continue;
    }
    if (isRule(words, ownHeaders, blocks.at(-1) === true)) return true;
    if (token === '{') blocks.push(words[0] === 'if' && BY_HOST.test(words[1] ?? ''));
    if (token === '}') blocks.pop();
    words = [];
  }
  return isRule(words, ownHeaders, false);
}

/** `isByHost`: within a condition that asks for the host. */
function isRule(
  [directive = '', first = '', second = '']: readonly string[],
  ownHeaders: ReadonlySet<string>,
  isByHost: boolean,
): boolean {
  if (directive === '' || HARMLESS.has(directive)) return false;
  if (directive === 'return') return !(isByHost && /^3\d\d$/.test(first));
  // No limit.
  if (directive === 'client_max_body_size') return first !== '0';
  if (directive !== 'proxy_set_header') return true;
  // Whatever the client has sent is replaced; an empty value removes it.
  const name = unquoted(first).toLowerCase();
  return !OF_CONNECTIONS.has(name) && (!ownHeaders.has(name) || unquoted(second) === '');
}

function unquoted(text: string): string {
  return text.replace(/^(["'])(.*)\1$/s, '$2');
}
