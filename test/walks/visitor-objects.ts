// The objects of a walk: an Ingress and a Gateway with TLS whose requests oauth2-proxy lets in, with what the document says of each.

export interface Names {
  readonly host: string;
  readonly address: string;
}

export interface VisitorObjects {
  /** By an Ingress. */
  readonly shop: Names;
  /** By a Gateway. */
  readonly desk: Names;
  /** What the document says: `metadata` of an Ingress, and `filters` of an HTTPRoute. */
  readonly annotations: string;
  readonly filters: string;
  readonly cert: string;
  readonly key: string;
}

/** As YAML. */
export function visitorObjects({ shop, desk, annotations, filters, cert, key }: VisitorObjects): string {
  const backend = (name: string, port: number) => `{service: {name: ${name}, port: {number: ${port}}}}`;
  const path = (text: string, to: string) => `{path: ${text}, pathType: Prefix, backend: ${to}}`;
  const ingress = (name: string, metadata: string, paths: readonly string[]) => `
apiVersion: networking.k8s.io/v1
kind: Ingress
${metadata}
  name: ${name}
spec:
  ingressClassName: edge
  tls: [{hosts: [${shop.host}], secretName: both}]
  rules: [{host: ${shop.host}, http: {paths: [${paths.join(', ')}]}}]
`;
  const ref = (name: string, port: number) => `[{name: ${name}, port: ${port}}]`;
  const open = (text: string, to: string) =>
    `  - {matches: [{path: {type: PathPrefix, value: ${text}}}], backendRefs: ${to}}\n`;
  return [
    secret(cert, key),
    service('web', 80, '127.0.0.30', 8080),
    service('oauth2-proxy', 4180, '127.0.0.40', 4180),
    `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: edge, annotations: {headgate.io/load-balancer-ips: ${shop.address}}}
spec: {controller: headgate.io/ingress-controller}
`,
    ingress('shop', annotations, [path('/', backend('web', 80))]),
    ingress('sign-in', 'metadata:', [
      path('/oauth2', backend('oauth2-proxy', 4180)),
      path('/public', backend('web', 80)),
    ]),
    `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: headgate}
spec: {controllerName: headgate.io/gateway-controller}
`,
    `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: headgate
  addresses: [{type: IPAddress, value: ${desk.address}}]
  listeners: [{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: both}]}}]
`,
    `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: desk}
spec:
  parentRefs: [{name: edge}]
  hostnames: [${desk.host}]
  rules:
${open('/oauth2', ref('oauth2-proxy', 4180))}${open('/public', ref('web', 80))}  - backendRefs: ${ref('web', 80)}
${filters.replaceAll(/^/gm, '    ')}
`,
  ].join('---\n');
}

function secret(cert: string, key: string): string {
  const text = (pem: string) => JSON.stringify(pem);
  return `
apiVersion: v1
kind: Secret
metadata: {name: both}
type: kubernetes.io/tls
stringData: {tls.crt: ${text(cert)}, tls.key: ${text(key)}}
`;
}

function service(name: string, port: number, address: string, targetPort: number): string {
  return `
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: ${port}}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: http, port: ${targetPort}}]
endpoints: [{addresses: [${address}], conditions: {ready: true}}]
`;
}
