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

/** The most reached addresses that are remembered. Through a NAT of the kernel a client may reach every address of 127.0.0.0/8. */
const MOST_REACHED = 256

interface CertificateDependencies {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<Metrics, 'certificateServed'>
  readonly machine: () => MachineNames
  readonly compareEvery: number
}

const UNSTORED = 'self-signed certificate: could not be stored; it is served from memory'

export type ServedCertificate = Awaited<ReturnType<typeof openCertificate>>

/**
 * Opens the certificate of the public listener. Postern replaces a self-signed certificate that lacks a name. It compares the names at
 * the start, at a reload, when a client connects to an address that the certificate lacks, and every `compareEvery` ms. Old names stay
 * until the next replacement or reload, so an interface that is down for a moment changes nothing.
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
  let comparisons: Timer | undefined
  /** A comparison of the names waits for earlier changes to end. */
  let comparisonWaits = false
  /** The addresses to which clients have connected. Each is compared with the certificate once. */
  const reached = new Set<string>()
  let closed = false
  /** Settles when all changes of the certificate so far have ended: they run one after the other. */
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

  /** Stores a self-signed certificate. If it cannot be stored, it is served from memory, and each comparison tries to store it again. */
  async function store(made: TlsMaterial): Promise<void> {
    const reason = await storeSelfSigned(made, stateDir)
    if (reason === undefined && unstored !== undefined) log.info('self-signed certificate: stored')
    else if (reason !== undefined && unstored === undefined) log.warn({ reason }, UNSTORED)
    unstored = reason === undefined ? undefined : made
  }

  function use(material: TlsMaterial): void {
    current = material
    // A reload has found a usable file.
    if (material !== unstored) unstored = undefined
    reached.clear()
    if (closed) return
    metrics.certificateServed(material.valid.from.at, material.valid.until.at)
    validity?.served(material.valid)
    for (const apply of listeners) apply(material)
  }

  async function compare(): Promise<void> {
    comparisonWaits = false
    if (current === undefined) return
    const material = await updated(current, setting, false)
    if (material !== current) use(material)
    else if (unstored !== undefined) await store(unstored)
  }

  /** Compares the names when the change in progress has ended. At most one comparison waits, even if the disk hangs. */
  function compareNext(): void {
    if (comparisonWaits || !isSelfSigned(setting)) return
    comparisonWaits = true
    void inTurn(compare).then(() => reportFailure(undefined), reportFailure)
  }

  const sources = { clock, log, machine: readMachine }
  const first = await loadTlsMaterial(initial, stateDir, { ...sources, replacesBroken: true })
  if (first !== undefined) use(await updated(first, initial, false))

  return {
    /** The present pair; undefined for cleartext. */
    get material(): TlsMaterial | undefined {
      return current
    },
    /** The validity of the present pair (wall clock, ms); undefined for cleartext. */
    present(): { readonly from: number; readonly until: number; readonly selfSigned: boolean } | undefined {
      if (current === undefined) return undefined
      const { from, until } = current.valid
      return { from: from.at, until: until.at, selfSigned: isSelfSigned(setting) }
    },
    /** Registers a listener: `next` is called with each new pair. No timer runs before the first call. */
    serve(next: (material: TlsMaterial) => void): void {
      listeners.push(next)
      if (listeners.length > 1) return
      validity = watchValidity(clock, log)
      if (current !== undefined) validity.served(current.valid)
      comparisons = clock.every(compareEvery, compareNext)
    },
    /** Call this when a client has connected to this address of the machine. A self-signed certificate may lack it. */
    reachedAt(address: string): void {
      if (reached.has(address) || reached.size === MOST_REACHED) return
      reached.add(address)
      const name = canonicalHost(address)
      if (name !== undefined && current?.names.includes(name) === false) compareNext()
    },
    /** Reads the pair of the setting `next` and serves it. Rejects, and changes nothing, if the pair is unusable. */
    reload: (next: TlsSetting): Promise<void> =>
      inTurn(async () => {
        if (current === undefined) return
        const found = await loadTlsMaterial(next, stateDir, sources)
        if (found === undefined) return
        const material = await updated(found, next, true)
        setting = next
        use(material)
      }),
    /** Starts no further change. Resolves when the change in progress has ended: no file is written after that. */
    async [Symbol.asyncDispose](): Promise<void> {
      closed = true
      comparisons?.cancel()
      validity?.close()
      await turn
    },
  }
}

/** Calls `report` for a problem unless the last call had one with the same reason. The argument is undefined if there is no problem. */
export function reportOnce(report: (problem: unknown) => void): (problem: unknown) => void {
  let last: string | undefined
  return (problem) => {
    const reason = problem === undefined ? undefined : reasonOf(problem)
    if (reason !== undefined && reason !== last) report(problem)
    last = reason
  }
}

/** Returns a function that reads the names of the machine. It warns if the addresses cannot be read. */
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
