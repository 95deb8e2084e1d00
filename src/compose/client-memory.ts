import type { MemoryStatus } from '../admin/control-socket.ts'
import { pagePasswordSources, passwordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { servicesOf } from '../config/upstream-fields.ts'
import { Account } from '../memory/account.ts'
import { budgetOf, keysAbove, type MemoryBudget, type UnusableKey } from '../memory/budget.ts'
import { type MemoryBounds, memoryBounds, memoryInUse } from '../memory/machine-memory.ts'
import type { Condition } from '../overview/model.ts'
import { readSource } from '../password/read-source.ts'
import { memoryOf } from '../password/verifier.ts'
import type { OpenLog } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { Clock } from '../system/clock.ts'
import { everySecond } from '../system/every-second.ts'
import { inMib } from '../system/text.ts'
import { watchFloods } from './floods.ts'

/** The budget that follows from `listen.memory`, and the keys whose values are too high for it. */
export interface MemoryPlan extends MemoryBudget {
  readonly bounds: MemoryBounds
  readonly unusable: readonly UnusableKey[]
}

/** Plans the memory by the configuration and the bounds of this process. `check` passes the bounds of the running sidecar. */
export async function planMemory(config: Config, bounds: MemoryBounds = memoryBounds()): Promise<MemoryPlan> {
  const { listen, upstream } = config
  const budget = budgetOf(listen.memory, bounds, await largestHash(config))
  const maxTunnels = servicesOf(upstream).reduce((sum, { service }) => sum + service.maxTunnels, 0)
  const unusable = keysAbove(budget.limit, { ...listen, secure: listen.tls !== 'off', maxTunnels })
  return { ...budget, bounds, unusable }
}

/** The memory that the most expensive stored hash takes (bytes). A file that cannot be read now counts as 0. */
async function largestHash(config: Config): Promise<number> {
  const sources = [...passwordSources(config), ...pagePasswordSources(config.admin)]
  const found = await Promise.all(sources.map((source) => readSource(source)))
  return Math.max(0, ...found.map((each) => ('credential' in each ? memoryOf(each.credential) : 0)))
}

/** The sentence of `check`, of the start and of `status`. */
export function describePlan({ limit, bound, isGiven, isCapped, unusable }: MemoryPlan): string {
  const whole = `clients may hold ${inMib(limit)}`
  const source = isGiven
    ? `as listen.memory says; ${bound.by} has ${inMib(bound.bytes)}`
    : isCapped
      ? `the most that auto takes; ${bound.by} has ${inMib(bound.bytes)}`
      : `a share of ${inMib(bound.bytes)}, which ${bound.by} has`
  const keys = unusable.map(({ key, fits }) => `${key} (fits: ${fits})`).join(', ')
  return `${whole}, ${source}${keys === '' ? '' : `; not to be used up under it: ${keys}`}`
}

/** While clients hold less than this part of the account, the memory of the process is not measured. */
const NOTHING_TO_SHED = 1 / 16

/** A process that uses this part of its memory counts as an account at its limit. */
const FULL = 0.88
/** A process that uses this part counts as an empty account: after floods, V8 and the C library keep this much and reuse it. */
const EMPTY = 0.7

export type Memory = ReturnType<typeof openMemory>

interface MemoryDependencies extends OpenLog {
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'shed'>
  /** This process runs only Postern. Then its memory is measured once a second. */
  readonly ownsProcess: boolean
  /** The fullness of the fullest memory bound, for a process that may take `most` bytes; default: read from the system. */
  readonly inUse?: (most: number) => number
}

/** The budget already has room for one hash of `postern hash-password` (bytes), so only more than that is charged. */
const RESERVED_FOR_HASHES = 20 * 1024 ** 2

/** Opens the account of the memory that clients hold (C26). Logs floods, and counts what the account sheds. */
export function openMemory(
  first: MemoryPlan,
  { clock, log, destination, metrics, ownsProcess, inUse = memoryInUse }: MemoryDependencies,
) {
  let plan = first
  // The anonymous memory of the process includes more than its heap, so the heap's bound does not apply to it.
  const ofProcess = memoryBounds().find(({ by }) => by !== "V8's heap") ?? plan.bound
  const floods = watchFloods(clock, log)
  let pageBytes = (): number => 0
  let hashing = 0
  const account: Account = new Account({
    limit: plan.limit,
    clock,
    onStage: (stage) => floods.stage(stage, account),
    onShed(stage, what) {
      floods.shed()
      metrics.shed(stage, what)
    },
  })
  /** Logs the plan. Called at the start, and when the limit changes. */
  const announce = (): void => log.info({ limit: plan.limit, plan: describePlan(plan) }, 'memory for clients')
  const nothingToShed = (): boolean => account.total < plan.limit * NOTHING_TO_SHED
  const checks = everySecond(clock, () => {
    account.set('log', destination.unwritten())
    account.set('page', pageBytes())
    if (!ownsProcess) return
    // While clients hold so little, there is nothing to shed, and an idle process reads no files.
    if (nothingToShed()) {
      account.measured(0)
      return
    }
    const used = inUse(ofProcess.bytes)
    account.measured(Math.max(0, (used - EMPTY) / (FULL - EMPTY)))
  })
  const hashes = {
    limit: plan.limit,
    hold(change: number): void {
      hashing += change
      account.set('hashes', Math.max(0, hashing - RESERVED_FOR_HASHES))
    },
  }
  return {
    account,
    hashes,
    /** Puts another plan into effect. */
    apply(next: MemoryPlan): void {
      const isSame = next.limit === plan.limit
      plan = next
      hashes.limit = next.limit
      account.setLimit(next.limit)
      if (!isSame) announce()
    },
    announce,
    /** The memory for the live page. */
    condition: (): Condition['memory'] => ({
      held: account.total,
      limit: plan.limit,
      stage: account.stage ?? null,
      shed: floods.timesShed(),
    }),
    /** The memory for `postern status`. */
    status: (): MemoryStatus => ({
      ...{ held: account.total, limit: plan.limit },
      ...{ plan: describePlan(plan), bounds: plan.bounds },
    }),
    /** Charges, once a second, the bytes that the viewers of the live page have not read. */
    watchPage(bytes: () => number): void {
      pageBytes = bytes
    },
    [Symbol.dispose](): void {
      checks.close()
      account.close()
    },
  }
}
