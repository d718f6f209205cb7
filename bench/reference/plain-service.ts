// The Service of the references: the least that a manifest can be read for, with patterns that fit only the benchmark's own
// files, and the least configuration that HAProxy needs for it. Validates nothing. Pure.

export interface PlainService {
  readonly name: string;
  readonly vip: string;
  readonly port: number;
  /** `address:port` of each ready endpoint. */
  readonly members: ReadonlySet<string>;
}

export function readPlain(manifest: string): PlainService {
  const end = manifest.indexOf('\n---\n');
  const service = manifest.slice(0, end);
  const [, name = ''] = /^ {2}name: (\S+)$/m.exec(service) ?? [];
  const [, vip = ''] = /^ {2}loadBalancerIP: (\S+)$/m.exec(service) ?? [];
  const [, port = ''] = /^ {2}- name: http\n {4}port: (\d+)$/m.exec(service) ?? [];
  const slice = manifest.slice(end);
  const [, memberPort = ''] = /^ports:\n- name: http\n {2}port: (\d+)$/m.exec(slice) ?? [];
  const members = new Set<string>();
  for (const [, address] of slice.matchAll(/^- addresses:\n {2}- (\S+)\n {2}conditions:\n {4}ready: true$/gm))
    members.add(`${address}:${memberPort}`);
  return { name, vip, port: Number(port), members };
}

export function plainConfig(services: Iterable<PlainService>): string {
  const sections: string[] = [];
  for (const { name, vip, port, members } of services) {
    const servers = [...members].map((member) => `    server ${member} ${member}\n`).join('');
    sections.push(`\nlisten ${name}\n    bind ${vip}:${port}\n    balance roundrobin\n${servers}`);
  }
  return sections.join('');
}
