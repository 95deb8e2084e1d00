import { canonicalHost } from '../http/ip.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock, Timer } from '../system/clock.ts'
import type { MachineNames } from '../system/machine-names.ts'
import { causeOf, reasonOf } from '../system/setup-error.ts'
import {
  isSelfSigned,
  loadTlsMaterial,
  remakeIfOutdated,
  storeSelfSigned,
  type TlsSetting,
  wantedNames,
} from './tls-material.ts'
import { type TlsMaterial, watchValidity } from './tls-pair.ts'

/** More addresses than a machine has, as a bound: through a NAT of the kernel a client may reach any address of 127.0.0.0/8. */
const MOST_REACHED = 256

export interface CertificateDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'certificateServed'>
  readonly machine: () => MachineNames
  readonly compareEvery: number
}

const UNSTORED = 'self-signed certificate: could not be stored; it is served from memory'

export type ServedCertificate = Awaited<ReturnType<typeof openCertificate>>

/**
 * Opens the certificate of the public listener. Postern replaces a self-signed certificate that lacks a name: at the start, at a
 * reload, when a client connects to an address that it lacks, and every `compareEvery` ms while it is served. Names that have gone
 * stay until the next replacement or a reload, so an interface that is down for a moment changes nothing.
 */
export async function openCertificate(
  initial: TlsSetting,
  stateDir: string,
  { clock, log, metrics, machine, compareEvery }: CertificateDependencies,
) {
  let setting = initial
  let current: TlsMaterial | undefined
  /** The served certificate, if it could not be stored. */
  let unstored: TlsMaterial | undefined
  const listeners: ((material: TlsMaterial) => void)[] = []
  let validity: ReturnType<typeof watchValidity> | undefined
  let looks: Timer | undefined
  /** A look at the names waits for its turn. */
  let lookWaits = false
  /** The addresses at which clients have arrived: each is compared with the certificate once. */
  const reached = new Set<string>()
  let closed = false
  /** The changes of the certificate, one after the other. */
  let turn: Promise<unknown> = Promise.resolve()
  const readMachine = createNameReader(machine, log)
  const reportFailure = reportOnce((error) =>
    log.error(causeOf(error), 'self-signed certificate: could not be made anew'),
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
    const remade = await remakeIfOutdated(found, stateDir, { wanted, exact, wall: clock.wall(), log, store })
    if (remade !== 'foreign') return remade ?? found
    if (found !== current) log.warn('self-signed certificate: not made by Postern, so it stays as it is')
    return found
  }

  /** Stores a self-signed certificate. One that cannot be stored is served all the same, and each check tries to store it again. */
  async function store(made: TlsMaterial): Promise<void> {
    const reason = await storeSelfSigned(made, stateDir)
    if (reason === undefined && unstored !== undefined) log.info('self-signed certificate: stored')
    else if (reason !== undefined && unstored === undefined) log.warn({ reason }, UNSTORED)
    unstored = reason === undefined ? undefined : made
  }

  function use(material: TlsMaterial): void {
    current = material
    // A reload found a usable file.
    if (material !== unstored) unstored = undefined
    reached.clear()
    if (closed) return
    metrics.certificateServed(material.valid.from.at, material.valid.until.at)
    validity?.served(material.valid)
    for (const apply of listeners) apply(material)
  }

  async function compare(): Promise<void> {
    lookWaits = false
    if (current === undefined) return
    const material = await updated(current, setting, false)
    if (material !== current) use(material)
    else if (unstored !== undefined) await store(unstored)
  }

  /** Looks at the names of the machine when the change in progress has ended. A disk that hangs lets one look wait. */
  function look(): void {
    if (lookWaits || !isSelfSigned(setting)) return
    lookWaits = true
    void inTurn(compare).then(() => reportFailure(undefined), reportFailure)
  }

  const sources = { clock, log, machine: readMachine }
  const first = await loadTlsMaterial(initial, stateDir, { ...sources, replacesBroken: true })
  if (first !== undefined) use(await updated(first, initial, false))

  return {
    /** The pair that is served now; undefined for cleartext. */
    get material(): TlsMaterial | undefined {
      return current
    },
    /** The pair that is served now (wall clock, ms); undefined for cleartext. */
    present(): { readonly from: number; readonly until: number; readonly selfSigned: boolean } | undefined {
      if (current === undefined) return undefined
      const { from, until } = current.valid
      return { from: from.at, until: until.at, selfSigned: isSelfSigned(setting) }
    },
    /** Call this when a listener exists. `next` is called with each new pair. No timer runs before the first call. */
    serve(next: (material: TlsMaterial) => void): void {
      listeners.push(next)
      if (listeners.length > 1) return
      validity = watchValidity(clock, log)
      if (current !== undefined) validity.served(current.valid)
      looks = clock.every(compareEvery, look)
    },
    /** A client has connected to this address of the machine, which a self-signed certificate may lack. */
    reachedAt(address: string): void {
      if (reached.has(address) || reached.size === MOST_REACHED) return
      reached.add(address)
      const name = canonicalHost(address)
      if (name !== undefined && current?.names.includes(name) === false) look()
    },
    /** Reads the pair again and serves it. Rejects, and changes nothing, if it is unusable. */
    reload: (next: TlsSetting): Promise<void> =>
      inTurn(async () => {
        if (current === undefined) return
        const found = await loadTlsMaterial(next, stateDir, sources)
        if (found === undefined) return
        const material = await updated(found, next, true)
        setting = next
        use(material)
      }),
    /** Resolves when a change in progress has ended. From then on no file is written. */
    async close(): Promise<void> {
      closed = true
      looks?.cancel()
      validity?.close()
      await turn
    },
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
function createNameReader(machine: () => MachineNames, log: Logger): () => MachineNames {
  const report = reportOnce((reason) =>
    log.warn({ reason }, 'the addresses of this machine cannot be read: name them in listen.tls'),
  )
  return () => {
    const found = machine()
    report(found.problem)
    return found
  }
}
