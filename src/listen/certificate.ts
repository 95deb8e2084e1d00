import { canonicalHost } from '../http/ip.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import type { MachineNames } from '../system/machine-names.ts'
import { createNameReader, type NameWatch, reportOnce, wantedNames, watchNames } from './certificate-names.ts'
import {
  isSelfSigned,
  loadTlsMaterial,
  type Remade,
  remakeIfOutdated,
  type TlsSetting,
} from './tls-material.ts'
import { type TlsMaterial, type ValidityWatch, watchValidity } from './tls-pair.ts'

/** More addresses than a machine has, as a bound: through a NAT of the kernel a client may reach any address of 127.0.0.0/8. */
const MOST_REACHED = 256

export interface CertificateDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'certificateServed'>
  readonly machine: () => MachineNames
  readonly compareEvery: number
}

/** The certificate of the public listener, from the start to the stop. */
export interface ServedCertificate {
  /** The pair at the start; undefined for cleartext. */
  readonly material: TlsMaterial | undefined
  /** The pair that is served now (wall clock, ms); undefined for cleartext. */
  present(): { readonly from: number; readonly until: number; readonly selfSigned: boolean } | undefined
  /** Call this when the listener exists. `apply` is called with each new pair. No timer runs before. */
  serve(apply: (material: TlsMaterial) => void): void
  /** A client has connected to this address of the machine, which a self-signed certificate may lack. */
  reachedAt(address: string): void
  /** Reads the pair again and serves it. Rejects, and changes nothing, if it is unusable. */
  reload(setting: TlsSetting): Promise<void>
  /** Resolves when a change in progress has ended. From then on no file is written. */
  close(): Promise<void>
}

/**
 * Opens the certificate of the public listener. Postern replaces a self-signed certificate that lacks a name: at the start, at a
 * reload, when a client connects to an address that it lacks, and every `compareEvery` ms while it is served. The latter two wait until
 * two readings agree, because interfaces come up one by one. Names that have gone stay until the next replacement or a reload, so an interface that is down for a moment
 * changes nothing.
 */
export async function openCertificate(
  initial: TlsSetting,
  stateDir: string,
  { clock, log, metrics, machine, compareEvery }: CertificateDependencies,
): Promise<ServedCertificate> {
  let setting = initial
  let current: TlsMaterial | undefined
  let apply = (_material: TlsMaterial): void => {}
  let validity: ValidityWatch | undefined
  let names: NameWatch | undefined
  /** The addresses at which clients have arrived: each is compared with the certificate once. */
  const reached = new Set<string>()
  let closed = false
  /** The changes of the certificate, one after the other. */
  let turn: Promise<unknown> = Promise.resolve()
  const readMachine = createNameReader(machine, log)
  const reportFailure = reportOnce((error) =>
    log.error({ err: error }, 'self-signed certificate: could not be made anew'),
  )

  function inTurn(change: () => Promise<void>): Promise<void> {
    const done = turn.then(() => (closed ? undefined : change()))
    turn = done.catch(() => {})
    return done
  }

  async function updated(found: TlsMaterial, next: TlsSetting, isReload: boolean): Promise<TlsMaterial> {
    if (!isSelfSigned(next)) return found
    const wanted = wantedNames(next, readMachine)
    const exact = isReload || next !== 'auto'
    const remade = await remakeIfOutdated(found, stateDir, { wanted, exact, wall: clock.wall() })
    if (remade === 'foreign') {
      if (found !== current) log.warn('self-signed certificate: not made by Postern, so it stays as it is')
    } else if (remade !== undefined) {
      report(remade)
      return remade.material
    }
    return found
  }

  function report({ added, removed, renewed, unstored }: Remade): void {
    log.info({ added, removed, renewed }, 'self-signed certificate: made anew, with the same key')
    if (unstored === undefined) return
    log.warn({ reason: unstored }, 'self-signed certificate: could not be stored; it is served from memory')
  }

  function use(material: TlsMaterial): void {
    current = material
    reached.clear()
    if (closed) return
    metrics.certificateServed(material.valid.from.at, material.valid.until.at)
    validity?.served(material.valid)
    apply(material)
  }

  async function compare(): Promise<void> {
    if (current === undefined) return
    const material = await updated(current, setting, false)
    if (material !== current) use(material)
  }

  /** Only a self-signed certificate depends on the names of the machine. */
  function followNames(): void {
    names?.close()
    const followed = setting
    names = isSelfSigned(followed)
      ? watchNames({
          read: () => wantedNames(followed, readMachine),
          onSettled: () => inTurn(compare).then(() => reportFailure(undefined), reportFailure),
          interval: compareEvery,
        })
      : undefined
  }

  function onMade(file: string, names: readonly string[]): void {
    log.info({ file, names }, 'self-signed certificate: made; clients trust this file')
  }

  const first = await loadTlsMaterial(initial, stateDir, {
    clock,
    machine: readMachine,
    onSetAside: (reason, files) =>
      log.error({ reason, names: files }, 'self-signed certificate: unusable, set aside; making another'),
    onMade,
  })
  if (first !== undefined) use(await updated(first, initial, false))

  return {
    material: current,
    present() {
      if (current === undefined) return undefined
      const { from, until } = current.valid
      return { from: from.at, until: until.at, selfSigned: isSelfSigned(setting) }
    },
    serve(next) {
      apply = next
      validity = watchValidity(clock, log)
      if (current !== undefined) validity.served(current.valid)
      followNames()
    },
    reachedAt(address) {
      if (reached.has(address) || reached.size === MOST_REACHED) return
      reached.add(address)
      const name = canonicalHost(address)
      if (name !== undefined && current?.names.includes(name) === false) names?.look()
    },
    reload: (next) =>
      inTurn(async () => {
        if (current === undefined) return
        const found = await loadTlsMaterial(next, stateDir, { clock, machine: readMachine, onMade })
        if (found === undefined) return
        const material = await updated(found, next, true)
        setting = next
        use(material)
        if (!closed) followNames()
      }),
    async close() {
      closed = true
      names?.close()
      validity?.close()
      await turn
    },
  }
}
