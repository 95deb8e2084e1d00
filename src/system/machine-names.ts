import { readFileSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { reasonOf } from './setup-error.ts'

/** The names and addresses by which clients may reach this machine. */
export interface MachineNames {
  /** The host name, and the full names that the machine knows. */
  readonly names: readonly string[]
  /** The addresses of the network interfaces, without loopback and IPv6 link-local addresses. */
  readonly addresses: readonly string[]
  /** Why the addresses cannot be read; undefined if they can. */
  readonly problem?: string
}

/** Reads the present names and addresses of the machine. Makes no DNS look-up. */
export function machineNames(): MachineNames {
  const host = hostname()
  const [short = host] = host.split('.', 1)
  const names = host === short ? [host, ...fullNames(host)] : [short, host]
  try {
    const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    // The address decides, not the interface: other machines can reach a service address on the loopback interface.
    const reachable = all.filter(({ address }) => !LOOPBACK.test(address) && !LINK_LOCAL.test(address))
    return { names, addresses: reachable.map(({ address }) => address) }
  } catch (error) {
    // systemd forbids the call if `RestrictAddressFamilies=` lacks AF_NETLINK.
    return { names, addresses: [], problem: reasonOf(error) }
  }
}

/** RFC 1122 §3.2.1.3 and RFC 4291 §2.5.3. */
const LOOPBACK = /^(?:127\.|::1$)/

/** fe80::/10 (RFC 4291 §2.5.6). Such an address needs the name of an interface, which a certificate cannot contain. */
const LINK_LOCAL = /^fe[89ab]/i

const HOSTS = '/etc/hosts'

/** The full names of a host in `/etc/hosts`, as in Debian's `127.0.1.1 box.example.com box`. None if the file cannot be read. */
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
