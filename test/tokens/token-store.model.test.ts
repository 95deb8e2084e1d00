import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { IssuedTokens } from '../../src/tokens/mint.ts'
import { createTestStore, POLICY, SECOND } from './support.ts'

const LIFETIME = { access: 60 * SECOND, refresh: 300 * SECOND }
const GRACE = 10 * SECOND
const CAPACITY = 12
/** The most tokens of one grant: a quarter of the capacity, but at least 8. */
const SHARE = 8

interface Entry {
  readonly plain: string
  readonly kind: 'access' | 'refresh'
  readonly grant: number
  readonly expires: number
  spent?: { readonly at: number; readonly result: IssuedTokens }
  fate?: 'expired' | 'revoked' | 'evicted'
  /** How many ended access tokens were noted before this one. */
  noted?: number
}

/** A naive token store as reference: one list of all tokens that were ever issued. */
class Model {
  now = 0
  entries: Entry[] = []
  /** The grants; the least recently used is first. */
  order: number[] = []
  grants = 0
  /** How many ended access tokens were noted. The store remembers the last `CAPACITY` of them. */
  notes = 0
  readonly rotate: boolean
  constructor(rotate: boolean) {
    this.rotate = rotate
  }

  live(): Entry[] {
    const live = this.entries.filter((entry) => entry.fate === undefined)
    this.depart(
      live.filter((entry) => entry.expires <= this.now),
      'expired',
    )
    return live.filter((entry) => entry.fate === undefined)
  }
  /** Ends tokens. The order of those that end at the same time is undefined, so all get the same number. */
  depart(entries: readonly Entry[], fate: 'expired' | 'revoked'): void {
    const { notes } = this
    for (const entry of entries) {
      entry.fate = fate
      if (entry.kind !== 'access') continue
      entry.noted = notes
      this.notes += 1
    }
  }
  touch(grant: number): void {
    this.order = [...this.order.filter((other) => other !== grant), grant]
  }
  add(kind: 'access' | 'refresh', plain: string, grant: number): void {
    this.entries.push({ kind, plain, grant, expires: this.now + LIFETIME[kind] })
  }
  makeRoom(grown: number): void {
    const own = (): Entry[] => this.live().filter((entry) => entry.grant === grown)
    while (own().length > SHARE) {
      const oldest = own().find((entry) => entry.kind === 'access' || entry.spent !== undefined)
      if (oldest) oldest.fate = 'evicted'
    }
    while (this.live().length > CAPACITY) {
      const alive = new Set(this.live().map((entry) => entry.grant))
      const victim = this.order.find((grant) => alive.has(grant))
      for (const entry of this.live()) if (entry.grant === victim) entry.fate = 'evicted'
    }
  }
  issue(tokens: IssuedTokens): void {
    this.live()
    const grant = this.grants++
    this.touch(grant)
    this.add('refresh', tokens.refreshToken, grant)
    this.add('access', tokens.accessToken, grant)
    this.makeRoom(grant)
  }
  refresh(plain: string, result: IssuedTokens | undefined): void {
    const entry = this.live().find((each) => each.plain === plain)
    const reused = entry?.spent !== undefined && this.now - entry.spent.at >= GRACE
    if (entry?.kind !== 'refresh' || reused) {
      expect(result).toBeUndefined()
      if (entry && reused) this.revoke(entry.grant)
      return
    }
    this.touch(entry.grant)
    if (result === undefined) throw new Error('a live refresh token was refused')
    if (entry.spent) {
      expect(result).toEqual(entry.spent.result)
      return
    }
    expect(this.entries.some((each) => each.plain === result.accessToken)).toBe(false)
    expect(result.refreshToken === plain).toBe(!this.rotate)
    if (this.rotate) {
      entry.spent = { at: this.now, result }
      this.add('refresh', result.refreshToken, entry.grant)
    }
    this.add('access', result.accessToken, entry.grant)
    this.makeRoom(entry.grant)
  }
  identify(plain: string, actual: string): string {
    this.live()
    const entry = this.entries.find((each) => each.plain === plain && each.kind === 'access')
    if (entry === undefined || entry.fate === 'evicted') return 'unknown'
    if (entry.fate !== undefined) {
      const forgotten = actual === 'unknown' && this.notes - (entry.noted ?? 0) > CAPACITY
      if (forgotten) entry.fate = 'evicted'
      return forgotten ? actual : entry.fate
    }
    this.touch(entry.grant)
    return 'valid'
  }
  revoke(grant: number | 'all'): void {
    this.depart(
      this.live().filter((entry) => grant === 'all' || entry.grant === grant),
      'revoked',
    )
  }
  counts(): { access: number; refresh: number } {
    const unspent = this.live().filter((entry) => entry.spent === undefined)
    const access = unspent.filter((entry) => entry.kind === 'access').length
    return { access, refresh: unspent.length - access }
  }
}

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ op: fc.constant('issue' as const) }) },
  { weight: 6, arbitrary: fc.record({ op: fc.constant('refresh' as const), pick: fc.nat() }) },
  { weight: 6, arbitrary: fc.record({ op: fc.constant('identify' as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('revoke' as const), pick: fc.nat() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('advance' as const),
      by: fc.oneof(fc.constantFrom(1, GRACE - 1, GRACE, LIFETIME.access - 1, LIFETIME.access), fc.nat(GRACE)),
    }),
  },
)

test.each([false, true])(
  'C5 C6 C7 H34 the store agrees with the naive model (rotation %s)',
  (rotateRefresh) => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 120 }), (steps) => {
        const policy = {
          accessLifetime: LIFETIME.access,
          refreshLifetime: LIFETIME.refresh,
          refreshGrace: GRACE,
        }
        const { store, clock } = createTestStore({ ...POLICY, ...policy, capacity: CAPACITY, rotateRefresh })
        const model = new Model(rotateRefresh)
        for (const each of steps) {
          const known = model.entries.slice(-40)
          const picked = 'pick' in each ? known[each.pick % known.length]?.plain : undefined
          if (each.op === 'issue') model.issue(store.issue('client', 'password'))
          else if (each.op === 'advance') {
            clock.advance(each.by)
            model.now += each.by
          } else if (picked === undefined) continue
          else if (each.op === 'refresh') model.refresh(picked, store.refresh(picked))
          else if (each.op === 'identify') {
            const found = store.identify(picked)
            const actual = found.kind === 'valid' ? 'valid' : found.cause
            expect(actual).toBe(model.identify(picked, actual))
          } else {
            const entry = model.live().find((other) => other.plain === picked)
            if (entry) model.revoke(entry.grant)
            expect(store.revoke({ token: picked }, 'test')).toBe(entry ? 1 : 0)
          }
          expect(store.counts()).toEqual(model.counts())
        }
      }),
      { numRuns: 150 },
    )
  },
)
