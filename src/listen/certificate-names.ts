import type { X509Certificate } from 'node:crypto'
import { canonicalHost } from '../http/ip.ts'
import type { Logger } from '../record/log.ts'
import type { MachineNames } from '../system/machine-names.ts'
import { reasonOf } from '../system/setup-error.ts'

/** By these the machine reaches itself. They are in every self-signed certificate. */
const LOOPBACK = ['localhost', '127.0.0.1', '::1']

/** The most names in a self-signed certificate, which every handshake carries. */
const MOST_NAMES = 100

/** The names and addresses of a certificate (RFC 5280 §4.2.1.6) in canonical form. Other kinds of names are left out. */
export function namesIn({ subjectAltName = '' }: X509Certificate): readonly string[] {
  const found = Array.from(
    subjectAltName.matchAll(/(?:^|, )(?:DNS|IP Address):([^",]*)/g),
    ([, name = '']) => name,
  )
  return found.map((name) => canonicalHost(name) ?? name)
}

/** The names for a self-signed certificate: those of the setting, or for `auto` those of the machine. Loopback is always among them. */
export function wantedNames(
  setting: 'auto' | { readonly names: readonly string[] },
  machine: () => MachineNames,
): readonly string[] {
  const names = setting === 'auto' ? machineNamesIn(machine()) : setting.names
  const canonical = [...LOOPBACK, ...names].flatMap((name) => canonicalHost(name) ?? [])
  return [...new Set(canonical)].slice(0, MOST_NAMES)
}

/** In a stable order: the system does not promise one. IPv4 addresses come first, because there are fewer. */
function machineNamesIn({ names, addresses }: MachineNames): readonly string[] {
  const canonical = addresses.flatMap((address) => canonicalHost(address) ?? [])
  const isIpv6 = (address: string): boolean => address.includes(':')
  const [ipv4, ipv6] = [canonical.filter((each) => !isIpv6(each)), canonical.filter(isIpv6)]
  return [...names, ...ipv4.toSorted(), ...ipv6.toSorted()]
}

export interface NameChange {
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

export function nameChange(held: readonly string[], wanted: readonly string[]): NameChange {
  return {
    added: wanted.filter((name) => !held.includes(name)),
    removed: held.filter((name) => !wanted.includes(name)),
  }
}

/** Calls `report` once for a problem with the same reason, and again when it comes back. Undefined: there is none now. */
export function reportOnce(report: (problem: unknown) => void): (problem: unknown) => void {
  let last: string | undefined
  return (problem) => {
    const reason = problem === undefined ? undefined : reasonOf(problem)
    if (reason !== undefined && reason !== last) report(problem)
    last = reason
  }
}

/** Reads what clients may call this machine, and warns if its addresses cannot be read. */
export function createNameReader(machine: () => MachineNames, log: Logger): () => MachineNames {
  const report = reportOnce((reason) =>
    log.warn({ reason }, 'the addresses of this machine cannot be read: name them in listen.tls'),
  )
  return () => {
    const found = machine()
    report(found.problem)
    return found
  }
}

export interface NameWatchDependencies {
  readonly read: () => readonly string[]
  /** Called when two looks in turn find the same names, because interfaces come up one by one. Must not reject. */
  readonly onSettled: () => Promise<void>
  /** Time from the end of one look to the next, while the names stay the same (ms). */
  readonly interval: number
}

/** Time to the next look after names that changed (ms). */
const SETTLE = 2_000

export interface NameWatch {
  /** Looks at once: a connection came to an address that the names do not have. */
  look(): void
  close(): void
}

/** Looks at the names of the machine at intervals. The next look waits until `onSettled` is done, because a disk may hang. */
export function watchNames({ read, onSettled, interval }: NameWatchDependencies): NameWatch {
  let seen = ''
  let looking = false
  /** A client arrived at another address during a look. */
  let again = false
  let closed = false
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    if (looking || closed) {
      again = looking
      return
    }
    looking = true
    again = false
    clearTimeout(timer)
    const names = read().join()
    const settled = names === seen
    seen = names
    if (settled) await onSettled()
    looking = false
    if (!closed) lookIn(settled && !again ? interval : Math.min(SETTLE, interval))
  }

  function lookIn(ms: number): void {
    timer = setTimeout(look, ms).unref()
  }

  lookIn(Math.min(SETTLE, interval))
  return {
    look: () => void look(),
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}
