// Constructs what keeps haproxy.cfg, and the files that it names, at the desired state.

import { FileSet } from '../host/file-set.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import type { BootedWorker } from './booted-worker.ts';
import { CandidateMaker } from './config/candidate.ts';
import { CertificateFiles } from './config/certificate-files.ts';
import { ConfigFile } from './config/config-file.ts';
import { GlobalSection } from './config/global-section.ts';
import { pagesOf, pageTexts } from './config/page-files.ts';
import { Persister } from './config/persister.ts';
import { Quarantine } from './config/quarantine.ts';
import { RejectionFile } from './config/rejection-file.ts';
import { tokenKeysOf, tokenKeyTexts } from './config/token-key-files.ts';
import type { HaproxyOptions } from './options.ts';
import type { HaproxyPaths } from './paths.ts';
import { RefusedRows } from './routes/refused-rows.ts';
import { routeTexts } from './routes/route-files.ts';
import type { HaproxySettings } from './settings.ts';
import type { Repair } from './worker/haproxy-monitor.ts';

/** What the files depend on, asked when it is needed. */
export interface FileHooks {
  readonly settings: () => HaproxySettings;
  /** The active one. */
  readonly worker: () => BootedWorker | undefined;
  readonly isRunning: () => Promise<boolean>;
  /** A reload or a start is under way, which writes the file itself. */
  readonly isReplacing: () => boolean;
  readonly onRepair: (what: Repair) => void;
}

/** For a desired state without TLS. */
const NO_TEXTS = { certificate: () => undefined, authority: () => undefined, crl: () => undefined };

/** Folders with exactly the files that haproxy.cfg names. */
function namedFiles({ pems }: HaproxyOptions, paths: HaproxyPaths, refusedRows: RefusedRows) {
  const modes = { fileMode: paths.fileMode, folderMode: paths.certificatesMode };
  const certificates = new CertificateFiles({
    folder: paths.certificates,
    ...modes,
    pems: pems ?? NO_TEXTS,
  });
  const routes = new FileSet({ folder: paths.routes, ...modes });
  const pages = new FileSet({ folder: paths.pages, ...modes });
  const keys = new FileSet({ folder: paths.keys, ...modes });
  const keysIn = (all: Iterable<LoadBalancer>) => tokenKeyTexts(tokenKeysOf(all), paths.keys);
  const pagesIn = (all: Iterable<LoadBalancer>) =>
    pageTexts(pagesOf(all), paths.pages, pems?.pages ?? (() => undefined));
  return {
    certificates,
    /** With the content that these load balancers need. */
    async write(all: Iterable<LoadBalancer>): Promise<void> {
      const loadBalancers = [...all];
      await certificates.write(loadBalancers);
      await routes.write(routeTexts(loadBalancers, paths.routes, refusedRows.tablesOf));
      await pages.write(pagesIn(loadBalancers));
      await keys.write(keysIn(loadBalancers));
    },
    async keep(): Promise<void> {
      for (const files of [certificates, routes, pages, keys]) await files.keep();
    },
    async keepOnly(used: readonly LoadBalancer[]): Promise<void> {
      await certificates.keepOnly(used);
      await pages.keepOnly(new Set(pagesIn(used).map(({ path }) => path)));
      await keys.keepOnly(new Set(Array.from(keysIn(used), ({ path }) => path)));
    },
  };
}

export type FileParts = ReturnType<typeof fileParts>;

export function fileParts(options: HaproxyOptions, paths: HaproxyPaths, hooks: FileHooks) {
  const { desired, replan, metrics, log } = options;
  const { settings, worker, isReplacing, onRepair } = hooks;
  const { haproxy: executable, haproxySupervisor, netns } = settings();
  const onRefused = (key: string): void => {
    persister.soon();
    replan([key]);
  };
  /** Load balancers and addresses that cannot be served now, with the reasons. */
  const quarantine = new Quarantine();
  const rejectionFile = new RejectionFile(`${paths.config}.rejected.json`);
  /** The sections of haproxy.cfg besides the load balancers. */
  const globalSection = new GlobalSection({
    paths,
    settings,
    isRunning: hooks.isRunning,
    ...(options.pems?.users && { users: options.pems.users }),
    log,
  });
  const { context } = globalSection;
  /** Rows that HAProxy refuses. */
  const refusedRows = new RefusedRows();
  const named = namedFiles(options, paths, refusedRows);
  const file = new ConfigFile(paths.config, {
    mode: paths.fileMode,
    keepBeside: async () => {
      await globalSection.keepFiles();
      await named.keep();
    },
    onTampered: () => {
      log.warn('Another process changed haproxy.cfg: writing it again', { path: paths.config });
      onRepair('file');
    },
  });
  /** Prepares the file for a start or a reload. */
  const maker = new CandidateMaker({
    executable,
    scratchFile: `${paths.config}.candidate`,
    quarantine,
    context,
    writeFiles: named.write,
    binding: {
      bound: () => {
        const serves = worker();
        if (serves !== undefined && serves.bound === undefined) return undefined;
        return new Set([...(serves?.bound ?? []), ...(options.other?.worker()?.bound ?? [])]);
      },
      ignoreAccess: haproxySupervisor === 'external',
      canProbe: netns === '',
    },
    onRefused,
  });
  /** Keeps haproxy.cfg at the desired state. */
  const persister = new Persister({
    file,
    loadBalancers: () => {
      const effective = maker.effective(desired);
      // HAProxy must check new load balancers first.
      if (isReplacing() || (worker() !== undefined && !maker.isChecked(effective))) return undefined;
      return maker.isGlobalRefused(effective) ? undefined : effective;
    },
    context,
    writeFiles: named.write,
    keepRejections: () => rejectionFile.save(quarantine.rejections),
    onPersisted: (result) => metrics.persisted(result),
    log,
  });
  return {
    quarantine,
    rejectionFile,
    globalSection,
    certificates: named.certificates,
    refusedRows,
    file,
    maker,
    persister,
    onRefused,
    /** Writes what an adopted worker needs, and removes what nothing does. */
    tidy: async (): Promise<void> => {
      const effective = [...maker.effective(desired).values()];
      // This agent may not have written the certificates of an adopted worker yet.
      await named.certificates.write(effective);
      await named.keepOnly([...effective, ...(worker()?.booted.values() ?? [])]);
    },
  };
}
