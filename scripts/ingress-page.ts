// docs/ingress-annotations.md as one text, made from the table of annotations of Ingresses. Pure.

import { INGRESS_ANNOTATIONS } from '../agent/translate/ingress/nginx-annotations.ts';

export function ingressPage(): string {
  const rows = Object.entries(INGRESS_ANNOTATIONS).map(
    ([name, { doc, allowed }]) => `| \`${name}\` | ${cell(doc)} | ${cell(allowed)} |`,
  );
  return `# Coming from ingress-nginx

<!-- Written by scripts/write-ingress-docs.ts from agent/translate/ingress/nginx-annotations.ts: change the table, then \`make docs\`. -->

ingress-nginx ended in March 2026.
There are two ways here, and both can be gone Ingress by Ingress:

- **Keep the Ingresses**: make an IngressClass of this controller ([Ingress](ingress.md)), and set \`spec.ingressClassName\` of one Ingress after the other.
  The annotations below mean the same as before.
  Both controllers can serve side by side, because each looks at its own class.
- **Make routes of them**: [ingress2gateway](https://github.com/kubernetes-sigs/ingress2gateway) prints a Gateway and HTTPRoutes for Ingresses: \`ingress2gateway print --providers=ingress-nginx\`.
  Set \`gatewayClassName\` to a class of this controller ([Gateway API](gateway-api.md)).

An annotation that is not in the table has no effect: the Ingress gets one Event \`AnnotationIgnored\` that names it, and \`headgate why\` shows it.
Snippets and ModSecurity are never read: they would let an author of Ingresses write configuration for everybody.

## Annotations

Each is read with the prefix \`nginx.ingress.kubernetes.io/\` and with \`headgate.io/\`, which has precedence.
A value that is not allowed is ignored, and the Event \`InvalidAnnotation\` says what is allowed.

| annotation | what it does | allowed |
|---|---|---|
${rows.join('\n')}

## What differs

- Regular expressions hold for the paths of one Ingress, not for all paths of its host; they distinguish upper and lower case.
- \`rewrite-target\` with capture groups works for the rest of a path, \`(/|$)(.*)\` with \`$2\` and \`/(.*)\` with \`$1\`; other groups are refused, and the path is not served.
- \`/shop\` with \`/base/$2\` becomes \`/base\`, not \`/base/\`.
- A redirect to another host keeps the query of the request.
- \`auth-tls-secret\` is of the Ingress' own namespace, and its host is answered only to clients that named it in their handshake (else status 421).
- \`proxy-read-timeout\` and \`proxy-send-timeout\` are one: how long a member may be silent.
- The host of a rule with TLS is redirected to https with status 308, as before.
- Paths with dot segments, such as \`/a/../b\`, are refused with status 400 unless the setting [\`dotSegments\`](settings.md#dotsegments) says otherwise; \`//\` stays as it is.
- \`auth-secret\` is of the Ingress' own namespace. Hashes of \`htpasswd\` without \`-B\` (\`$apr1$\`) cannot be verified by HAProxy: \`htpasswd -B -C 5\` writes others.
- \`proxy-body-size\` looks at \`Content-Length\`: the body of a request without one, chunked or by HTTP/2, is not counted.
- Headers of a proxy in front are believed only if [\`trusted-proxies\`](forwarded-headers.md) of the class names it, as with \`use-forwarded-headers\` and \`proxy-real-ip-cidr\`.
`;
}

/** A bar would end the cell. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
