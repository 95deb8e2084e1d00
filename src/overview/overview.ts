import type { Endpoint } from '../http/admission.ts'
import type { UsedUpWindow } from '../limits/used-up-windows.ts'
import type { Clock } from '../system/clock.ts'
import type { GrantSummary, Tokens } from '../tokens/token-contract.ts'
import type { History } from './history.ts'
import type { About, Condition, GrantRow, LimitCondition, Overview } from './model.ts'
import type { Timeline } from './timeline.ts'

/** A limit, and the windows that it counts in. */
interface LimitSource extends Pick<LimitCondition, 'requests' | 'window' | 'per'> {
  readonly usedUp: () => readonly UsedUpWindow[]
}

export interface OverviewDependencies {
  readonly about: About
  readonly clock: Clock
  readonly history: Pick<History, 'points' | 'onPoint'>
  readonly timeline: Pick<Timeline, 'entries'>
  readonly condition: () => Omit<Condition, 'limits'>
  readonly limits: () => Readonly<Record<Endpoint, LimitSource>>
  readonly tokens: Pick<Tokens, 'grants'>
}

/** How many used-up windows of a limit are shown. */
const SHOWN = 100

/** How long the grants of a shared store are shown before it is asked again (ms): listing them costs the server time. */
const ASK_EVERY = 10_000

/** What the admin listener shows. Only `grants` may ask another process, at most every ten seconds. */
export function createOverview({
  about,
  clock,
  history,
  timeline,
  condition,
  limits,
  tokens,
}: OverviewDependencies): Overview {
  let asked:
    | { readonly at: number; readonly grants: Promise<readonly GrantRow[] | 'unavailable'> }
    | undefined

  function limitCondition({ usedUp, ...limit }: LimitSource): LimitCondition {
    const windows = usedUp()
    const ahead = clock.wall() - clock.monotonic()
    return {
      ...limit,
      usedUp: windows.slice(0, SHOWN).map(({ key, closesAt, refused }) => ({
        key,
        until: Math.ceil(closesAt + ahead),
        refused,
      })),
      usedUpCount: windows.length,
    }
  }

  function grants(): ReturnType<Overview['grants']> {
    const now = clock.monotonic()
    if (asked !== undefined && now - asked.at < ASK_EVERY) return asked.grants
    const found = tokens.grants()
    if (!(found instanceof Promise)) return found === 'unavailable' ? found : rowsOf(found)
    asked = { at: now, grants: found.then((list) => (list === 'unavailable' ? list : rowsOf(list))) }
    return asked.grants
  }

  return {
    about,
    points: history.points,
    condition() {
      const { api, oauth } = limits()
      return { ...condition(), limits: { api: limitCondition(api), oauth: limitCondition(oauth) } }
    },
    timeline: timeline.entries,
    grants,
    onPoint: history.onPoint,
  }
}

/** The most recently used first. A login is a use. */
function rowsOf(grants: readonly GrantSummary[]): readonly GrantRow[] {
  return grants
    .map(({ id, client, issuedAt, expiresAt, usedAt }) => ({ id, client, issuedAt, expiresAt, usedAt }))
    .sort((a, b) => (b.usedAt ?? b.issuedAt) - (a.usedAt ?? a.issuedAt))
}
