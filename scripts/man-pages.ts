// The manual pages headgate(8) and headgate.yaml(5), built from the commands, the table of settings, and the tables of keys
// in the documents. Pure.

import { type Command, usageOf } from '../agent/cli/command.ts';
import { commands } from '../agent/cli/commands.ts';
import { EXIT_STATUS } from '../agent/cli/help.ts';
import { defaultInWords, flagExample, plain, seeing } from '../agent/settings/help.ts';
import { allSettings, groups, type Setting, variableOf } from '../agent/settings/table.ts';
import { changeInWords } from './settings-page.ts';

export interface ManualDate {
  readonly version: string;
  /** Such as `2026-11-20`. */
  readonly date: string;
}

/** headgate(8) in roff. */
export function commandPage({ version, date }: ManualDate): string {
  return page(
    title('HEADGATE', 8, version, date),
    section('NAME', text('headgate - load-balancer agent for Kubernetes Services, Gateways and Ingresses')),
    section('SYNOPSIS', ...commands.flatMap((command) => ['.B headgate', text(usageOf(command)), '.br'])),
    section(
      'DESCRIPTION',
      text(
        'Reads Services, Gateways with their routes, and Ingresses from a Kubernetes cluster or from folders of manifests, and keeps HAProxy (TCP and HTTP), nftables (UDP, SCTP, and TCP on request) and keepalived (virtual addresses) in exactly the state that these objects describe.',
      ),
      '.PP',
      text(
        'HAProxy and keepalived run in their own units, so stopping, killing or upgrading the agent does not affect traffic.',
      ),
    ),
    section('COMMANDS', ...commands.flatMap(commandEntry)),
    section(
      'OPTIONS',
      text('The flags are described in'),
      '.BR headgate.yaml (5).',
      ...allSettings().map(
        ([name, setting]) =>
          `.TP\n.B ${escaped(`--${flag(name, setting)}`)}\n${text(`${summary(name, setting.doc)} Default: ${plain(defaultInWords(setting))}.`)}`,
      ),
      ...entry('--config FILE', ['The settings file.']),
    ),
    section(
      'ENVIRONMENT',
      ...entry('HEADGATE_CONFIG', ['The settings file, like --config.']),
      ...entry('HEADGATE_STATE_DIR, HEADGATE_LISTEN and so on', [
        'Every setting has a variable, see headgate.yaml(5). Flags have precedence.',
      ]),
    ),
    section(
      'EXIT STATUS',
      ...Object.entries(EXIT_STATUS).flatMap(([status, means]) => entry(status, [means])),
    ),
    section(
      'EXAMPLES',
      ...commands.flatMap(({ examples }) => examples.flatMap(({ line, doc }) => entry(line, [doc]))),
    ),
    section(
      'SIGNALS',
      ...entry('SIGTERM, SIGINT', ['The agent ends; traffic continues.']),
      ...entry('SIGHUP', ['The agent reads its settings again and logs the differences.']),
    ),
    section(
      'FILES',
      ...entry('/etc/headgate/headgate.yaml', ['The settings of headgate.service.']),
      ...entry('/etc/credstore/headgate.kubeconfig', ['Optional credentials for the cluster.']),
      ...entry('/etc/credstore/headgate.pair', ['Optional credentials of the pair.']),
      ...entry('/etc/credstore/headgate.vrrp-key', ['Optional key of the advertisements of VRRP.']),
      ...entry('/var/lib/headgate', ['The last good state, which a host serves after a reboot.']),
      ...entry('/run/headgate', ['Sockets and process ids.']),
    ),
    section(
      'UNITS',
      ...entry('headgate.service', ['The agent.']),
      ...entry('headgate-haproxy.service', ['HAProxy.']),
      ...entry('headgate-haproxy-landing.service', ['The small HAProxy that serves new Services first.']),
      ...entry('headgate-keepalived.service', ['keepalived, on hosts that hold VIPs by VRRP.']),
      ...entry('headgate-conntrackd.service', ['conntrackd, on hosts that synchronise connections.']),
      ...entry('headgate-bird.service', ['BIRD, on hosts that announce VIPs by BGP.']),
      ...entry('headgate-rules.service', ['the rules of nftables, on hosts that forward UDP or SCTP.']),
      ...entry('headgate@NAME.service, headgate-haproxy@NAME.service, headgate-keepalived@NAME.service', [
        'The same units for a load balancer in the network namespace NAME with the settings /etc/headgate/NAME.yaml.',
      ]),
    ),
    section('SEE ALSO', '.BR headgate.yaml (5),', '.BR haproxy (1),', '.BR keepalived (8)'),
  );
}

function commandEntry(command: Command): readonly string[] {
  const { purpose, details = [], flags } = command;
  const ofFlags = Object.entries(flags).map(([name, { doc }]) => `--${name}: ${doc}.`);
  return entry(usageOf(command), [purpose, ...details, ...ofFlags]);
}

/** The documents that have the keys of settings whose value is a mapping: the name of the setting → Markdown. */
export interface KeyDocuments {
  /** docs/high-availability.md */
  readonly vrrp: string;
  /** docs/addresses.md */
  readonly pools: string;
}

/** headgate.yaml(5) in roff. */
export function settingsPage({ version, date }: ManualDate, documents: KeyDocuments): string {
  return page(
    title('HEADGATE.YAML', 5, version, date),
    section('NAME', text('headgate.yaml - settings of the load-balancer agent headgate')),
    section(
      'DESCRIPTION',
      text(
        'A YAML file with one mapping. Each key also has a flag and an environment variable: a flag has precedence over a variable, and a variable over the file. An unknown key or a value that is not allowed is an error; the agent lists all errors at once.',
      ),
      '.PP',
      text(
        'Relative paths start from the directory of the file. On SIGHUP the agent reads the file again and logs each change, and the changes that need a restart.',
      ),
    ),
    ...groups.map((group) =>
      section(
        group.toUpperCase(),
        ...allSettings()
          .filter(([, setting]) => setting.group === group)
          .flatMap(([name, setting]) => entry(name, paragraphs(name, setting))),
      ),
    ),
    section('KEYS OF VRRP', ...keyEntries(documents.vrrp, 'interface')),
    section(
      'KEYS OF POOLS',
      ...entry('name', ['The name of the pool.']),
      ...keyEntries(documents.pools, 'blocks'),
    ),
    section(
      'EXAMPLES',
      ...[
        'manifests: [/etc/headgate/manifests]',
        'listen: 127.0.0.1:9180',
        'pools:',
        '  - name: public',
        '    blocks: [192.0.2.0/26]',
      ].flatMap((line) => [text(line), '.br']),
    ),
    section('SEE ALSO', '.BR headgate (8)'),
  );
}

function paragraphs(name: string, setting: Setting<unknown>): readonly string[] {
  return [
    inManual(setting.doc),
    `Allowed: ${plain(setting.kind.allowed)}. Default: ${plain(defaultInWords(setting))}. Flag --${flag(name, setting)}, variable ${variableOf(name)}. ${changeInWords(setting)}.`,
  ];
}

function keyEntries(markdown: string, firstKey: string): readonly string[] {
  return rowsOf(markdown, firstKey).flatMap(([key = '', ...cells]) => entry(key, [meaningOf(cells)]));
}

/** The cells of the rows of a table in Markdown, from the row with this key on. */
function rowsOf(markdown: string, firstKey: string): readonly (readonly string[])[] {
  const lines = markdown.split('\n');
  const from = lines.findIndex((line) => line.startsWith(`| \`${firstKey}\` |`));
  if (from < 0) throw new Error(`No table of the documents begins with the key "${firstKey}"`);
  const end = lines.findIndex((line, at) => at > from && !line.startsWith('|'));
  return lines.slice(from, end).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => plain(cell.trim())),
  );
}

/** The last cell, after the default if there is one. */
function meaningOf(cells: readonly string[]): string {
  const meaning = cells.at(-1) ?? '';
  const byDefault = cells.length > 1 ? cells[0] : '';
  return `${meaning.replace(/\.$/, '')}.${byDefault === '' ? '' : ` Default: ${byDefault}.`}`;
}

function flag(name: string, setting: Setting<unknown>): string {
  return flagExample(name, setting).replace(/^--/, '');
}

/** The keys of settings whose value is a mapping are in headgate.yaml(5). */
const WITH_KEYS: ReadonlySet<string> = new Set(['vrrp', 'pools'] satisfies readonly (keyof KeyDocuments)[]);

function summary(name: string, doc: string): string {
  const placeOf = (page: string) =>
    WITH_KEYS.has(name) ? 'headgate.yaml(5)' : `/usr/share/doc/headgate/docs/${page}`;
  return plain(seeing(doc.split(/(?<=\.) /)[0] ?? '', placeOf));
}

/** Links name the document of the package. */
function inManual(doc: string): string {
  return plain(
    doc.replaceAll(/\[([^\]]+)\]\(([a-z-]+\.md)(#[a-z-]+)?\)/g, '$1 (/usr/share/doc/headgate/docs/$2)'),
  );
}

function page(...parts: readonly string[]): string {
  return `${parts.join('\n')}\n`;
}

function title(name: string, number: number, version: string, date: string): string {
  return `.TH ${name} ${number} ${date} "headgate ${version}" "Headgate"`;
}

function section(name: string, ...lines: readonly string[]): string {
  return [`.SH ${/\s/.test(name) ? `"${name}"` : name}`, ...lines].join('\n');
}

function entry(tag: string, paragraphs: readonly string[]): readonly string[] {
  const [first = '', ...more] = paragraphs;
  return ['.TP', `.B ${escaped(tag)}`, text(first), ...more.flatMap((each) => ['.IP', text(each)])];
}

/** A line that roff reads as text, even if it begins like a request. */
function text(words: string): string {
  return escaped(words).replace(/^(?=[.'])/, '\\&');
}

function escaped(words: string): string {
  return words.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('’', "'");
}
