import { readFileSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { reasonOf } from './setup-error.ts'

/** What clients may call this machine. */
export interface MachineNames {
  /** The host name; the full name, if the machine knows one. */
  readonly names: readonly string[]
  /** The addresses of its network interfaces, without loopback addresses and without IPv6 link-local ones. */
  readonly addresses: readonly string[]
  /** Why the addresses cannot be read; undefined if they can. */
  readonly problem?: string
}

/** Reads the names and addresses that the machine has now. Asks no other machine, so no DNS lookup is made. */
export function machineNames(): MachineNames {
  const host = hostname()
  const [short = host] = host.split('.', 1)
  const names = host === short ? [host, ...fullNames(host)] : [short, host]
  try {
    const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    // A service address on the loopback interface is reachable from other machines, so the interface does not tell.
    const reachable = all.filter(({ address }) => !LOOPBACK.test(address) && !LINK_LOCAL.test(address))
    return { names, addresses: reachable.map(({ address }) => address) }
  } catch (error) {
    // systemd forbids it to a service without AF_NETLINK in RestrictAddressFamilies=.
    return { names, addresses: [], problem: reasonOf(error) }
  }
}

/** RFC 1122 §3.2.1.3 and RFC 4291 §2.5.3. */
const LOOPBACK = /^(?:127\.|::1$)/

/** fe80::/10 (RFC 4291 §2.5.6). Such an address works only with the name of an interface, which no certificate can hold. */
const LINK_LOCAL = /^fe[89ab]/i

const HOSTS = '/etc/hosts'

/** The names of a host with a domain, as Debian writes them: `127.0.1.1 box.example.com box`. None if the file cannot be read. */
function fullNames(host: string): readonly string[] {
  try {
    const entries = readFileSync(HOSTS, 'utf8')
      .split('\n')
      .map((line) => line.replace(/#.*/, '').trim().split(/\s+/))
    const own = entries.filter(([, ...names]) => names.includes(host))
    return own.flat().filter((name) => name.startsWith(`${host}.`))
  } catch {
    return []
  }
}
