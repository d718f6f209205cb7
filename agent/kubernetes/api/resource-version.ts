// Which of two resource versions is the older one. Pure.

/** Versions are numbers that only grow (KEP-5504); what is none cannot be compared. */
export function isOlder(version: string, than: string | undefined): boolean {
  if (than === undefined || !/^\d{1,30}$/.test(version) || !/^\d{1,30}$/.test(than)) return false;
  return BigInt(version) < BigInt(than);
}
