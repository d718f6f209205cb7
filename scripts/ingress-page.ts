// docs/ingress-annotations.md as one text, made from the table of annotations of Ingresses. Pure.

import { WITHOUT_EFFECT } from '../agent/protection/nginx-names.ts';
import { ANNOTATIONS_THAT_PROTECT } from '../agent/protection/protections.ts';
import { INGRESS_ANNOTATIONS } from '../agent/translate/ingress/nginx-annotations.ts';
import { SUITE } from '../test/conformance/ingress-nginx-tests.ts';

export function ingressPage(): string {
  const rows = Object.entries(INGRESS_ANNOTATIONS).map(
    ([name, { doc, allowed }]) => `| \`${name}\` | ${cell(doc)} | ${cell(allowed)} |`,
  );
  return `# Coming from ingress-nginx

<!-- Written by scripts/write-ingress-docs.ts from agent/translate/ingress/nginx-annotations.ts: change the table, then \`make docs\`. -->

ingress-nginx ended in March 2026.
There are two ways here, and both can be gone Ingress by Ingress:

- **Keep the Ingresses**: make an IngressClass of this controller ([Ingress](ingress.md)), and set \`spec.ingressClassName\` of one Ingress after the other.
  The annotations below mean the same as before, also those of [single sign-on](external-auth.md).
  Both controllers can serve side by side, because each looks at its own class.
- **Make routes of them**: [ingress2gateway](https://github.com/kubernetes-sigs/ingress2gateway) prints a Gateway and HTTPRoutes for Ingresses: \`ingress2gateway print --providers=ingress-nginx\`.
  Set \`gatewayClassName\` to a class of this controller ([Gateway API](gateway-api.md)).

[What people rely on](conformance/ingress-nginx.md) goes through ${SUITE.tests} tests of ingress-nginx by feature: there, other, or not, and why.

## Before the move

\`headgate plan\` says which requests would get something else, and first of all what would be open; it changes nothing and needs no agent.

\`\`\`sh
# ingresses/: Ingresses, Services, EndpointSlices, and an IngressClass of this controller, by the name that the Ingresses have.
headgate render --strict --manifests ingresses/  # a line for each annotation that closes or has no effect
# routes/: what ingress2gateway printed, the GatewayClass that it names, and the same Services and EndpointSlices.
headgate plan ingresses/ routes/ --requests access.log --host shop.example.org  # --host: logs of nginx have none
\`\`\`

What ingress2gateway leaves out shows as \`Opens\`:

\`\`\`
1 opens, 0 close; 2 load balancers (1 by the landing, 1 by a reload); 0 problems
Opens
  Ingress shop/shop#0 → HTTPRoute shop/shop#0: Open only to clients from 10.0.0.0/8 → Open to everybody
      GET http://shop.example.org/
\`\`\`

## Annotations

Each is read with the prefix \`nginx.ingress.kubernetes.io/\` and with \`headgate.io/\`, which has precedence.
A value that is not allowed gives the Event \`InvalidAnnotation\`, which says what is allowed.
If the annotation [protects](security.md#what-protects), as ranges, users and limits do, requests then get status 403; of a list of ranges the good entries count, and a wrong one lets no client in.
If it says what becomes of requests, as \`rewrite-target\` does, they get status 500; all others are ignored.

An annotation that is not in the table and only adds comfort has no effect: the Ingress gets one Event \`AnnotationIgnored\` that names it, and \`headgate why\` shows it.
One that protects, and that Headgate does not have, [closes](#annotations-that-close) the Ingress.
Snippets and ModSecurity are never read: they would let an author of Ingresses write configuration for everybody.

| annotation | what it does | allowed |
|---|---|---|
${rows.join('\n')}

## Annotations that close

Headgate does not have these, and an Ingress that asks for one answers 403 instead of being open to everybody: an application behind single sign-on would else become public.
Values that ask for nothing, such as \`enable-modsecurity: "false"\`, \`limit-rate: "0"\`, a \`proxy-cookie-path\` of paths or a snippet that only adds headers to answers, have no effect.
A snippet that sets a header of members, or has a \`location\` or \`return\`, closes; only a redirect by the host (\`if ($host = …)\`) does not.
If the Ingress must be served all the same, name them in \`headgate.io/serve-without: "ssl-ciphers"\`, of the Ingress or of its IngressClass; the Event \`ProtectionMissing\` then says so.

| annotation | protects by |
|---|---|
${missing()}

## Annotations without an effect

These add comfort that Headgate does not have: the Ingress is served without it.

| annotation | here |
|---|---|
${comfort()}

## What differs

- \`limit-rps\`, \`limit-rpm\` and \`limit-connections\` hold for each path of an Ingress and on each host that serves; more than they allow gets 429 at once, without the bursts of ingress-nginx.
- A client that shows no certificate, or a wrong one, ends in the handshake without \`auth-tls-error-page\`; on port 80 it gets 403.
- \`custom-http-errors\` replaces answers of members; those of the load balancer itself (502, 503, 504) have the pages of the class ([\`error-pages\`](annotations.md#error-pages)).
- The cookie of \`affinity\` is for all paths unless \`session-cookie-path\` says otherwise, and follows a client to another member when its own fails.
- A path of type ImplementationSpecific is a prefix by whole elements; one that is guarded, by ranges, users, limits or an authorization server, has what begins with its letters, too, as in ingress-nginx: \`/admin\` has \`/admin.php\`.
- Exact paths come first; regular expressions and other paths of a host are compared by the length of their text, as in ingress-nginx, but a prefix never comes before one below it.
- Without \`hsts\` no \`Strict-Transport-Security\` is added; ingress-nginx adds it to answers by https, for a year and with subdomains.
- Regular expressions match in any case, as in ingress-nginx.
  There they make expressions of all paths of their host; here of the guarded ones, if others of the host are not guarded alike: \`/admin\` is \`/ADMIN\` and \`/administrator\`, too.
- The paths \`/shop(/|$)(.*)\` with \`$2\`, \`/shop/(.*)\` and \`/(shop/.*)\` with \`$1\` are prefixes: \`/shop\` is one of them, and with \`/base/$2\` becomes \`/base\`, not \`/base/\`, and no other spelling is.
  Groups of all other paths, such as \`/shop/?(.*)\`, are looked up by a regular expression; a rewritten path with dot segments is refused with status 400.
- \`auth-tls-secret\` is of the Ingress' own namespace, and its host is answered only to clients that named it in their handshake (else status 421).
  In the moment in which the authorities change, a request on a connection from before gets 421, too: the client asks again on another one.
- \`auth-tls-match-cn\` looks at the subject from the beginning of a name; a name elsewhere, as in \`O=a CN=b\`, does not count.
- Paths with dot segments, such as \`/a/../b\`, are refused with status 400 unless the setting [\`dotSegments\`](settings.md#dotsegments) says otherwise; \`//\` and \`;\` are where some paths of a host are guarded ([\`ambiguousPaths\`](settings.md#ambiguouspaths)).
- \`enable-cors\` without \`cors-allow-origin\` answers \`*\` without credentials; ingress-nginx answers \`*\` with credentials, which browsers refuse.
- \`auth-secret\` is of the Ingress' own namespace. Hashes of \`htpasswd\` without \`-B\` (\`$apr1$\`) cannot be verified by HAProxy: \`htpasswd -B -C 5\` writes others.
- \`auth-url\` of a host that is neither a Service nor of the same class closes; [more](external-auth.md).
- Without \`proxy-body-size\` a body may have any length; in ingress-nginx 1 MB is the most. Here a chunked body, or one by HTTP/2 without \`Content-Length\`, is not counted.
- A Service of type ExternalName has no endpoints, and its requests get 503.
- Headers of a proxy in front are believed only if [\`trusted-proxies\`](forwarded-headers.md) of the class names it, as with \`use-forwarded-headers\` and \`proxy-real-ip-cidr\`.
`;
}

function comfort(): string {
  return WITHOUT_EFFECT.map(
    ([here, ...names]) => `| ${names.map((name) => `\`${name}\``).join(', ')} | ${here} |`,
  )
    .toSorted()
    .join('\n');
}

function missing(): string {
  return ANNOTATIONS_THAT_PROTECT.filter(({ kinds }) => kinds.length === 0)
    .map(({ name, by }) => `| \`${name}\` | ${by} |`)
    .join('\n');
}

/** A bar would end the cell. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
