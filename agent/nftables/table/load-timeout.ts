// How long nft may take for a file of rules, in milliseconds. Pure.

/** The timeout of any command. */
export const COMMAND_TIMEOUT_MS = 30_000;
/** Much more than nft needs on a machine with nothing else to do, because others may be busy on it. */
const MS_PER_MEBIBYTE = 16_000;

/** `bytes`: of the file. */
export function loadTimeoutMs(bytes: number): number {
  return COMMAND_TIMEOUT_MS + Math.ceil((bytes / 1024 ** 2) * MS_PER_MEBIBYTE);
}
