// The text of BIRD's file as it should be now. A peer whose password cannot be used, or whose session does not come back with what
// has changed of it, keeps its last good version, so that no peer holds up another.

import { sameValue } from '../../base/same-value.ts';
import { contentOf } from '../../host/atomic-file.ts';
import type { HostGroup } from '../../model/host-group.ts';
import type { BgpPeer, BgpSettings } from '../bgp.ts';
import type { PeerFacts } from './options.ts';
import { passwordOf } from './passwords.ts';
import type { BirdPaths } from './paths.ts';
import { protocolOf, renderBird } from './render.ts';

export interface BirdTextOptions {
  readonly paths: Pick<BirdPaths, 'vips' | 'config'>;
  /** The current ones. */
  readonly bgp: () => BgpSettings;
  readonly group: () => HostGroup | undefined;
  readonly peers: PeerFacts;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** A peer as a text has it. */
interface Version {
  readonly peer: BgpPeer;
  readonly password: string | undefined;
}

interface Refused {
  readonly version: Version;
  readonly at: number;
  /** What BIRD says of it; '' if its session has not come back. */
  readonly fault: string;
}

/** After so long a session would be up again with the version before. */
const PATIENCE_MS = 30_000;

export class BirdText {
  readonly #options: BirdTextOptions;
  /** By the name of the peer. */
  #rendered: ReadonlyMap<string, Version> = new Map();
  #good: ReadonlyMap<string, Version> = new Map();
  /** Name of a peer → what ended its session, and when. */
  readonly #refused = new Map<string, Refused>();
  #whys: ReadonlyMap<string, string> = new Map();

  constructor(options: BirdTextOptions) {
    this.#options = options;
  }

  /** Why a peer is not as its settings or its object ask, as a sentence's end; '' if it is. */
  why(peer: string): string {
    return this.#whys.get(peer) ?? '';
  }

  /** The peers of the last text whose sessions have been ended by a change. */
  get fault(): string {
    const kept = [...this.#refused.keys()].filter((name) => this.#whys.get(name) === NOT_BACK);
    return kept.length === 0 ? '' : `The session of ${kept.join(', ')} ${NOT_BACK}`;
  }

  /** The names of the sessions in the last text. */
  get protocols(): ReadonlySet<string> {
    return new Set([...this.#rendered.values()].map(({ peer }) => protocolOf(peer)));
  }

  async render(): Promise<string> {
    const { bgp, paths, peers } = this.#options;
    const before = (await contentOf(paths.config)) ?? '';
    // What an agent before this one has rendered stays until the objects have been read.
    if (!peers.areRead() && before !== '') return before;
    const whys = new Map<string, string>();
    const rendered = new Map<string, Version>();
    for (const peer of bgp().peers) {
      const version = await this.#version(peer, before, whys);
      if (version !== undefined) rendered.set(peer.name, version);
    }
    for (const name of this.#refused.keys()) if (!rendered.has(name)) this.#refused.delete(name);
    this.#whys = whys;
    this.#rendered = rendered;
    return this.#textOf(rendered);
  }

  #textOf(versions: ReadonlyMap<string, Version>): string {
    const { bgp, paths, group } = this.#options;
    const passwords = [...versions].flatMap(([name, { password }]) =>
      password === undefined ? [] : [[name, password] as const],
    );
    const peers = [...versions.values()].map(({ peer }) => peer);
    return renderBird({ ...bgp(), peers }, paths, new Map(passwords), group());
  }

  /** BIRD runs with the last text, and its sessions are there. */
  proved(): void {
    this.#good = this.#rendered;
  }

  /** With the last text these sessions have not come back. */
  refuse(protocols: readonly string[]): void {
    for (const [name, version] of this.#rendered)
      if (protocols.includes(protocolOf(version.peer)))
        this.#refused.set(name, { version, at: this.#options.now(), fault: '' });
  }

  /** BIRD refuses the last text: finds the peers for which it does. True if there is one. `check`: '' or BIRD's fault. */
  async isolate(check: (text: string) => Promise<string>): Promise<boolean> {
    // It is no peer's fault.
    if ((await check(this.#textOf(new Map()))) !== '') return false;
    let hasFound = false;
    for (const [name, version] of this.#rendered) {
      if (sameValue(this.#good.get(name), version)) continue;
      const others = [...this.#good].filter(([other]) => other !== name);
      const fault = await check(this.#textOf(new Map([...others, [name, version]])));
      if (fault === '') continue;
      this.#refused.set(name, { version, at: this.#options.now(), fault });
      hasFound = true;
    }
    return hasFound;
  }

  /** Tries again what was refused if the version before does not work either. True if there is such a peer. */
  retry(isEstablished: (peer: string) => boolean): boolean {
    let hasChanged = false;
    for (const [name, { at, fault }] of this.#refused) {
      if (fault !== '' || this.#options.now() - at < PATIENCE_MS || isEstablished(name)) continue;
      this.#refused.delete(name);
      hasChanged = true;
    }
    return hasChanged;
  }

  async #version(peer: BgpPeer, before: string, whys: Map<string, string>): Promise<Version | undefined> {
    const { peers } = this.#options;
    const found = await passwordOf(peer, peers.secret);
    const isUsable = found === undefined || 'text' in found;
    if (!isUsable) whys.set(peer.name, found.why);
    const password = isUsable ? found?.text : lastPassword(before, peer);
    // Never without the password that it is to have.
    if (!isUsable && password === undefined) return undefined;
    const version = { peer, password };
    const good = this.#good.get(peer.name);
    const refused = this.#refused.get(peer.name);
    if (refused === undefined) return version;
    if (!sameValue(refused.version, version)) {
      this.#refused.delete(peer.name);
      return version;
    }
    if (refused.fault !== '') {
      whys.set(peer.name, `BIRD refuses it: ${refused.fault}`);
      return good;
    }
    if (good === undefined || sameValue(good, version)) return version;
    whys.set(peer.name, NOT_BACK);
    return good;
  }
}

const NOT_BACK = 'does not come back with what has changed: the former version stays';

/** The password that a file of BIRD has for this peer at this address. */
function lastPassword(text: string, peer: BgpPeer): string | undefined {
  const from = text.indexOf(`\nprotocol bgp ${protocolOf(peer)} {\n`);
  if (from < 0) return undefined;
  const end = text.indexOf('\n}\n', from);
  const lines = text.slice(from, end < 0 ? undefined : end).split('\n');
  if (!lines.some((line) => line.startsWith(`  neighbor ${peer.address} port `))) return undefined;
  const [, password] = lines.map((line) => /^ {2}password "([^"]*)";$/.exec(line)).find(Boolean) ?? [];
  return password;
}
