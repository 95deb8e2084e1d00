import { wantedNames } from '../listen/certificate-names.ts'
import {
  isSelfSigned,
  loadTlsMaterial,
  type Remade,
  remakeIfOutdated,
  type TlsSetting,
} from '../listen/tls-material.ts'
import type { TlsMaterial } from '../listen/tls-pair.ts'
import { type ValidityWatch, watchValidity } from '../listen/validity.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import type { MachineNames } from '../system/machine-names.ts'
import { reasonOf } from '../system/node-permission.ts'

export interface CertificateDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'certificateServed'>
  readonly machine: () => MachineNames
}

/** The certificate of the public listener, from the start to the stop. */
export interface ServedCertificate {
  /** The pair at the start; undefined for cleartext. */
  readonly material: TlsMaterial | undefined
  /** Call this when the listener exists. `apply` is called with each new pair. No timer runs before. */
  serve(apply: (material: TlsMaterial) => void): void
  /** Reads the pair again and serves it. Rejects, and changes nothing, if it is unusable. */
  reload(setting: TlsSetting): Promise<void>
  close(): void
}

/** How often the names of the machine are compared with those of the certificate (ms). One comparison costs 0.1 ms. */
const INTERVAL = 2_000

/**
 * Opens the certificate. A self-signed one gets the names that it lacks at the start, at a reload, and while it is served, as soon
 * as two comparisons in turn find the same new names: interfaces come up one by one. A name that the machine no longer has stays
 * in it until a reload or until it is made anew for another reason, so an interface that is down for a moment changes nothing.
 */
export async function openCertificate(
  initial: TlsSetting,
  stateDir: string,
  { clock, log, metrics, machine }: CertificateDependencies,
): Promise<ServedCertificate> {
  let validity: ValidityWatch | undefined
  let setting = initial
  let apply = (_material: TlsMaterial): void => {}
  /** The changes of the certificate, one after the other. */
  let turn: Promise<unknown> = Promise.resolve()
  let current: TlsMaterial | undefined
  let seen = ''
  let problem: string | undefined

  function inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = turn.then(change)
    turn = done.catch(() => {})
    return done
  }

  function wantedBy(next: TlsSetting): readonly string[] | undefined {
    return isSelfSigned(next) ? wantedNames(next, readMachine) : undefined
  }

  function readMachine(): MachineNames {
    const found = machine()
    if (found.problem !== undefined && found.problem !== problem) {
      log.warn(
        { reason: found.problem },
        'the addresses of this machine cannot be read: name them in listen.tls',
      )
    }
    problem = found.problem
    return found
  }

  async function updated(found: TlsMaterial, next: TlsSetting, isReload: boolean): Promise<TlsMaterial> {
    const wanted = wantedBy(next)
    if (wanted === undefined) return found
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
    metrics.certificateServed(material.valid.from.at, material.valid.until.at)
    validity?.served(material.valid)
    apply(material)
  }

  async function compare(): Promise<void> {
    const names = wantedBy(setting)?.join() ?? ''
    const settled = names === seen
    seen = names
    if (current === undefined || !settled) return
    const material = await updated(current, setting, false)
    if (material !== current) use(material)
  }

  const first = await loadTlsMaterial(initial, stateDir, {
    clock,
    machine: readMachine,
    onSetAside: (reason, names) =>
      log.error({ reason, names }, 'self-signed certificate: unusable, set aside; making another'),
  })
  if (first !== undefined) current = await updated(first, initial, false)
  if (current !== undefined) use(current)
  let failed: string | undefined
  let isComparing = false
  let timer: NodeJS.Timeout | undefined

  async function watch(): Promise<void> {
    // A disk may hang.
    if (isComparing) return
    isComparing = true
    try {
      await inTurn(compare)
    } catch (error) {
      const reason = reasonOf(error)
      if (reason !== failed) log.error({ err: error }, 'self-signed certificate: could not be made anew')
      failed = reason
    }
    isComparing = false
  }

  return {
    material: current,
    serve(next) {
      apply = next
      validity = watchValidity(clock, log)
      if (current !== undefined) validity.served(current.valid)
      timer = setInterval(() => void watch(), INTERVAL).unref()
    },
    reload: (next) =>
      inTurn(async () => {
        if (current === undefined) return
        const found = await loadTlsMaterial(next, stateDir, { clock, machine: readMachine })
        if (found === undefined) return
        const material = await updated(found, next, true)
        setting = next
        use(material)
      }),
    close() {
      clearInterval(timer)
      validity?.close()
    },
  }
}
