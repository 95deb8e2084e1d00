import type { X509Certificate } from 'node:crypto'
import { canonicalName } from '../http/host-name.ts'
import type { MachineNames } from '../system/machine-names.ts'

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
  return found.map((name) => canonicalName(name) ?? name)
}

/** The names for a self-signed certificate: those of the setting, or for `auto` those of the machine. Loopback is always among them. */
export function wantedNames(
  setting: 'auto' | { readonly names: readonly string[] },
  machine: () => MachineNames,
): readonly string[] {
  const names = setting === 'auto' ? machineNamesIn(machine()) : setting.names
  const canonical = [...LOOPBACK, ...names].flatMap((name) => canonicalName(name) ?? [])
  return [...new Set(canonical)].slice(0, MOST_NAMES)
}

/** In a stable order: the system does not promise one. IPv4 addresses come first, because there are fewer. */
function machineNamesIn({ names, addresses }: MachineNames): readonly string[] {
  const canonical = addresses.flatMap((address) => canonicalName(address) ?? [])
  const isIpv6 = (address: string): boolean => address.includes(':')
  const [ipv4, ipv6] = [canonical.filter((each) => !isIpv6(each)), canonical.filter(isIpv6)]
  return [...names, ...ipv4.toSorted(), ...ipv6.toSorted()]
}

export interface NameChange {
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

/** How the names of a certificate have to change. */
export function nameChange(held: readonly string[], wanted: readonly string[]): NameChange {
  return {
    added: wanted.filter((name) => !held.includes(name)),
    removed: held.filter((name) => !wanted.includes(name)),
  }
}
