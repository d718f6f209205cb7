// A fake OpenStack for its real client: Keystone's tokens and Neutron's networks, ports and floating IPs, in memory, on a port of
// the loopback. It knows only what the example provisioner needs, and keeps two rules of Neutron: a floating IP has one port,
// and a port that has one must not be deleted silently.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';

export type Resource = Record<string, unknown> & { readonly id: string };
type Kind = 'networks' | 'ports' | 'floatingips';

const SINGULAR: Readonly<Record<Kind, string>> = {
  networks: 'network',
  ports: 'port',
  floatingips: 'floatingip',
};
const PROJECT = '0123456789abcdef0123456789abcdef';

export class FakeNeutron {
  readonly url: string;
  readonly stored: Readonly<Record<Kind, Map<string, Resource>>> = {
    networks: new Map(),
    ports: new Map(),
    floatingips: new Map(),
  };
  /** `POST floatingips`: the changes. */
  readonly changes: string[] = [];
  #count = 0;

  static async start(t: Pick<ExecutionContext<unknown>, 'teardown'>): Promise<FakeNeutron> {
    const server = createServer((request, response) => {
      void fake.#answer(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const fake = new FakeNeutron(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    return fake;
  }

  private constructor(url: string) {
    this.url = url;
  }

  /** Makes a resource as an administrator would. */
  add(kind: Kind, fields: Readonly<Record<string, unknown>>): Resource {
    const id = `00000000-0000-4000-8000-${String(++this.#count).padStart(12, '0')}`;
    const resource = { id, project_id: PROJECT, tags: [], ...fields };
    this.stored[kind].set(id, resource);
    return resource;
  }

  /** The clouds.yaml of its client. */
  clouds(): string {
    return JSON.stringify({
      clouds: {
        headgate: {
          auth: {
            auth_url: `${this.url}/v3`,
            username: 'headgate',
            password: 'secret',
            project_name: 'lb',
            user_domain_name: 'Default',
            project_domain_name: 'Default',
          },
          region_name: 'R',
          identity_api_version: 3,
        },
      },
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const { pathname, searchParams } = new URL(request.url ?? '/', this.url);
    const send = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(body === undefined ? '' : JSON.stringify(body));
    };
    if (pathname === '/v3/auth/tokens') return send(201, this.#token(), { 'x-subject-token': 'token' });
    if (pathname.startsWith('/v3')) return send(200, { version: this.#version('v3.14', '/v3/') });
    const [, , , kind = '', id = ''] = pathname.split('/');
    if (kind === '') return send(200, { versions: [this.#version('v2.0', '/network/v2.0/')] });
    if (!isKind(kind)) return send(200, { [kind]: [] });
    const [status, body] = this.#handle(kind, id, {
      method: request.method ?? 'GET',
      query: searchParams,
      sent: text === '' ? {} : JSON.parse(text)[SINGULAR[kind]],
    });
    send(status, body);
  }

  #handle(
    kind: Kind,
    id: string,
    { method, query, sent }: { method: string; query: URLSearchParams; sent: Record<string, unknown> },
  ): [status: number, body: unknown] {
    const all = this.stored[kind];
    if (method !== 'GET') this.changes.push(`${method} ${kind}`);
    if (method === 'POST') return [201, { [SINGULAR[kind]]: this.#made(kind, sent) }];
    if (id === '') return [200, { [kind]: [...all.values()].filter((each) => matches(each, query)) }];
    const known = all.get(id);
    if (known === undefined) return [404, { NeutronError: { message: `${kind} ${id} not found` } }];
    if (method === 'DELETE') {
      const isUsed = [...this.stored.floatingips.values()].some((each) => each.port_id === id);
      if (isUsed) return [409, { NeutronError: { message: `Port ${id} has a floating IP` } }];
      all.delete(id);
      return [204, undefined];
    }
    if (method === 'PUT') all.set(id, withDefaults({ ...known, ...sent, id }));
    return [200, { [SINGULAR[kind]]: all.get(id) }];
  }

  #made(kind: Kind, sent: Record<string, unknown>): Resource {
    if (kind !== 'floatingips') return this.add(kind, sent);
    const count = this.stored.floatingips.size + 1;
    return this.add(kind, { ...sent, floating_ip_address: `203.0.113.${100 + count}` });
  }

  #version(id: string, path: string): object {
    return { id, status: 'CURRENT', links: [{ rel: 'self', href: `${this.url}${path}` }] };
  }

  #token(): object {
    const endpoint = (path: string) => [
      { id: 'e', interface: 'public', region: 'R', region_id: 'R', url: `${this.url}${path}` },
    ];
    return {
      token: {
        methods: ['password'],
        user: { id: 'u', name: 'headgate', domain: { id: 'default', name: 'Default' } },
        project: { id: PROJECT, name: 'lb', domain: { id: 'default', name: 'Default' } },
        roles: [{ id: 'r', name: 'member' }],
        issued_at: '2026-01-01T00:00:00.000000Z',
        expires_at: '2099-01-01T00:00:00.000000Z',
        audit_ids: ['a'],
        catalog: [
          { id: 'k', type: 'identity', name: 'keystone', endpoints: endpoint('/v3') },
          { id: 'n', type: 'network', name: 'neutron', endpoints: endpoint('/network') },
        ],
      },
    };
  }
}

function isKind(text: string): text is Kind {
  return text in SINGULAR;
}

/** A floating IP without a port leads nowhere; an address pair has the MAC address of its port. */
function withDefaults(resource: Resource): Resource {
  if ('floating_ip_address' in resource)
    return resource.port_id ? resource : { ...resource, port_id: null, fixed_ip_address: null };
  const { mac_address, allowed_address_pairs = [] } = resource;
  const pairs = (allowed_address_pairs as readonly object[]).map((each) => ({ mac_address, ...each }));
  return { ...resource, allowed_address_pairs: pairs };
}

/** Filters as Neutron's: `fixed_ips=ip_address=10.0.0.5` looks into a list. */
function matches(resource: Resource, query: URLSearchParams): boolean {
  return [...query].every(([name, value]) => {
    if (name !== 'fixed_ips') return !(name in resource) || String(resource[name]) === value;
    const [field = '', wanted] = value.split('=');
    const all = (resource.fixed_ips ?? []) as readonly Readonly<Record<string, string>>[];
    return all.some((each) => each[field] === wanted);
  });
}
