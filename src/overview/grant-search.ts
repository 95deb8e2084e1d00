import { type Clock, rest } from '../system/clock.ts'
import type { GrantOwner, GrantSummary } from '../tokens/grant-table.ts'
import type { Tokens } from '../tokens/token-store.ts'
import type { GrantRow, GrantsFound } from './model.ts'

/** Searches for a text. `busy`: as many texts wait as one pass can search for. */
export type GrantSearch = (text: string) => Promise<GrantsFound | 'busy' | 'unavailable'>

/** The most rows of one search. It counts all matches. */
const MOST_ROWS = 100
/** The most texts of one pass. */
const MOST_TEXTS = 8
/** The comparisons without a pause: they take less than a millisecond. */
const STEP = 2_000
/** The pause after `STEP` comparisons (ms): requests come first. */
const PAUSE = 20
/** The least time between the starts of two passes (ms). */
const PASS_EVERY = 500
/** How long the list of a shared store is kept (ms): each list costs the server time. */
const LIST_EVERY = 10_000
/** The pause between two lists, in multiples of the time of the last one: a large store spends at most 1/20 of its time on lists. */
const REST = 20

interface Wanted {
  readonly result: Promise<GrantsFound | 'unavailable'>
  readonly found: (result: GrantsFound | 'unavailable') => void
  readonly failed: (error: unknown) => void
}

/**
 * Searches all live grants for a part of a client's address, of an id or of a label, in any letter case. The work is bounded for any number
 * of viewers and texts: one pass at a time searches for all texts that wait, at most two passes begin in a second, and a pass makes at most
 * 100,000 comparisons a second (1.5 % of a core).
 */
export function createGrantSearch(tokens: Pick<Tokens, 'owners' | 'describe'>, clock: Clock): GrantSearch {
  let waiting = new Map<string, Wanted>()
  let isSearching = false
  let listed: { readonly until: number; readonly owners: readonly GrantOwner[] | 'unavailable' } | undefined

  async function list(): Promise<readonly GrantOwner[] | 'unavailable'> {
    const asked = clock.monotonic()
    if (listed !== undefined && asked < listed.until) return listed.owners
    const owners = tokens.owners()
    if (!(owners instanceof Promise)) return owners
    const answer = await owners
    const took = clock.monotonic() - asked
    listed = { until: asked + took + Math.max(LIST_EVERY, REST * took), owners: answer }
    return answer
  }

  async function pass(texts: readonly string[]): Promise<ReadonlyMap<string, GrantsFound> | 'unavailable'> {
    const owners = await list()
    if (owners === 'unavailable') return owners
    const matches = new Map(texts.map((text): [string, string[]] => [text, []]))
    const step = Math.ceil(STEP / texts.length)
    for (let at = 0; at < owners.length; at += step) {
      if (at > 0) await rest(clock, PAUSE)
      for (const { id, client, label = '' } of owners.slice(at, at + step)) {
        const described = `${client} ${id} ${label}`.toLowerCase()
        for (const [text, ids] of matches) if (described.includes(text)) ids.push(id)
      }
    }
    const shown = new Map([...matches].map(([text, ids]) => [text, ids.slice(-MOST_ROWS)]))
    const grants = await tokens.describe([...new Set([...shown.values()].flat())])
    if (grants === 'unavailable') return grants
    const rows = new Map(grants.map((grant) => [grant.id, grantRow(grant)]))
    return new Map(
      [...matches].map(([text, ids]) => [
        text,
        {
          matches: ids.length,
          rows: (shown.get(text) ?? []).flatMap((id) => rows.get(id) ?? []).reverse(),
        },
      ]),
    )
  }

  async function searchAll(): Promise<void> {
    isSearching = true
    while (waiting.size > 0) {
      const wanted = waiting
      waiting = new Map()
      const pause = rest(clock, PASS_EVERY)
      try {
        const found = await pass([...wanted.keys()])
        for (const [text, each] of wanted)
          each.found(found === 'unavailable' ? found : (found.get(text) ?? { matches: 0, rows: [] }))
      } catch (error) {
        for (const each of wanted.values()) each.failed(error)
      }
      await pause
    }
    isSearching = false
  }

  return async (text) => {
    const part = text.trim().toLowerCase()
    let wanted = waiting.get(part)
    if (wanted === undefined) {
      if (waiting.size >= MOST_TEXTS) return 'busy'
      const { promise, resolve, reject } = Promise.withResolvers<GrantsFound | 'unavailable'>()
      wanted = { result: promise, found: resolve, failed: reject }
      waiting.set(part, wanted)
    }
    if (!isSearching) void searchAll()
    return wanted.result
  }
}

/** The row of a grant on the page. */
export function grantRow({ id, client, label, issuedAt, expiresAt, usedAt }: GrantSummary): GrantRow {
  const row = { id, client, issuedAt, expiresAt, usedAt }
  return label === undefined ? row : { ...row, label }
}
