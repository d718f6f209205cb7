// Reads an INI file in the way of oslo.config, as Octavia's own agent does: a value ends with its line, so that it may
// contain `#`, `;` and `=`; an indented line continues the value before it. Pure.
// The format: https://docs.openstack.org/oslo.config/latest/configuration/format.html

/** By section and key; the last line of a key counts. */
export type OsloConfig = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Gives one text for each line that cannot be read. */
export function readOsloConfig(text: string): {
  readonly config: OsloConfig;
  readonly faults: readonly string[];
} {
  const config = new Map<string, Map<string, string>>();
  const faults: string[] = [];
  let section = new Map<string, string>();
  let last = '';
  config.set('DEFAULT', section);
  for (const [at, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trimEnd();
    const fault = (why: string): number => faults.push(`line ${at + 1} ${why}`);
    if (line === '') last = '';
    else if (/^[ \t]/.test(line)) {
      if (last === '') fault('is indented, but continues no value');
      else section.set(last, `${section.get(last)}\n${line.trimStart()}`);
    } else if (line.startsWith('[')) {
      const [, name] = /^\[(.+)\]$/.exec(line) ?? [];
      if (name === undefined) fault('is no section such as [haproxy_amphora]');
      section = config.get(name ?? '') ?? new Map<string, string>();
      config.set(name ?? '', section);
      last = '';
    } else if (/^[#;]/.test(line)) last = '';
    else {
      const [, key = '', value = ''] = /^([^=:]*)[=:](.*)$/.exec(line) ?? [];
      last = key.trim();
      if (last === '') fault('has no key and value');
      else section.set(last, unquoted(value.trim()));
    }
  }
  return { config: finished(config), faults };
}

/** oslo.config removes one pair of quotes around a whole value. */
function unquoted(value: string): string {
  return /^(["']).*\1$/.test(value) && value.length > 1 ? value.slice(1, -1) : value;
}

/** A dollar sign is written as `$$` or `\$`; the controller writes no references to other values. */
function finished(config: ReadonlyMap<string, ReadonlyMap<string, string>>): OsloConfig {
  const made = new Map<string, ReadonlyMap<string, string>>();
  for (const [name, section] of config)
    made.set(name, new Map([...section].map(([key, value]) => [key, value.replaceAll(/\$\$|\\\$/g, '$')])));
  return made;
}

/** A list is comma-separated; empty items do not count. */
export function listOf(value: string): readonly string[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
