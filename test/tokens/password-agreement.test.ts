import { expect, it } from 'vitest'
import { createPasswordAgreement } from '../../src/fleet/agreement.ts'
import { createTokenCopies } from '../../src/fleet/copies.ts'
import { PUBLISH } from '../../src/fleet/epoch.ts'
import { REVOKE_GRANTS } from '../../src/fleet/scripts.ts'
import type { StoreReply } from '../../src/fleet/shared-store.ts'
import { scriptedStore, storeDown } from '../fleet/scripted-store.ts'
import { stillClock } from '../support/clock.ts'
import { liveRequests } from './live-requests.ts'

const STATE = ['100', 'c2FsdA', 'mine', '1-0', '', '']

function agreementWith(
  read: () => StoreReply,
  published: (args: readonly string[]) => StoreReply = () => [],
  revoked: (args: readonly string[]) => StoreReply = () => [],
) {
  const differences: boolean[] = []
  const counted: unknown[] = []
  const store = scriptedStore((script, args) => {
    if (script === REVOKE_GRANTS) return revoked(args)
    return script === PUBLISH ? published(args) : read()
  })
  const copies = createTokenCopies({
    store,
    clock: stillClock(),
    policy: { capacity: 10, accessLifetime: 3_600_000, offlineGrace: 0 },
    live: liveRequests(),
    hasName: () => true,
    timeout: 1_000,
  })
  const agreement = createPasswordAgreement({
    store,
    epoch: copies.epoch,
    generation: () => 0,
    fingerprint: async () => 'mine',
    onRevoked: (grants, reason) => counted.push([grants, reason]),
    onDiffers: (differs) => differences.push(differs),
    onBug: (error) => expect.unreachable(String(error)),
  })
  return { agreement, store, differences, epoch: copies.epoch, counted }
}

it('H135 answers that make no sense do not hold a login', async () => {
  for (const odd of ['OK', null, 7, [], ['', '']]) {
    const { agreement, store } = agreementWith(
      () => odd,
      () => odd,
    )
    await expect(agreement.settle()).rejects.toThrow('make no sense')
    expect(store.asked.length).toBeLessThan(50)
    expect(await agreement.present()).toEqual({ kind: 'unknown' })
  }
})

it('H134 another password in the store is overwritten once after the start, and then respected', async () => {
  let state: StoreReply = ['100', 'c2FsdA', 'other', '1-0', '', '']
  const { agreement, store, differences } = agreementWith(
    () => state,
    () => {
      state = ['101', 'c2FsdA', 'mine', '2-0', '', '']
      return [0, '101']
    },
  )
  await agreement.settle()
  expect(await agreement.present()).toMatchObject({ kind: 'agreed', epoch: '101' })
  state = ['102', 'c2FsdA', 'other', '3-0', '', '']
  await agreement.settle()
  await agreement.settle()
  expect(await agreement.present()).toEqual({ kind: 'differs' })
  expect(differences).toEqual([true])
  expect(store.asked.filter(({ script }) => script === PUBLISH)).toHaveLength(1)
})

it('H234 a password that is the earlier one again when the store answers voids the tokens all the same', async () => {
  let state: StoreReply = STATE
  const { agreement, store } = agreementWith(
    () => state,
    () => {
      state = ['101', 'c2FsdA', 'mine', '2-0', '', '']
      return [1, '101']
    },
  )
  const published = () => store.asked.filter(({ script }) => script === PUBLISH).length
  await agreement.settle()
  expect(published()).toBe(0)
  agreement.changed('')
  expect(await agreement.present()).toMatchObject({ kind: 'agreed', epoch: '101' })
  await agreement.settle()
  expect(published()).toBe(1)
})

it('H134 a change that another sidecar has published is not published again', async () => {
  let state: StoreReply = STATE
  const { agreement, store } = agreementWith(() => state)
  await agreement.settle()
  state = ['101', 'c2FsdA', 'mine', '2-0', '', '']
  agreement.changed('')
  expect(await agreement.present()).toMatchObject({ kind: 'agreed', epoch: '101' })
  expect(store.asked.filter(({ script }) => script === PUBLISH)).toEqual([])
})

it('H274 a name that is over costs the others nothing, and a sidecar with an earlier password does not publish that with it', async () => {
  const named = (epoch: string, since: string) => [
    ...[epoch, 'c2FsdA', 'admin=other monitor=x', '1-0'],
    ...['', since],
  ]
  let state: StoreReply = STATE
  const { agreement, epoch, counted, store } = agreementWith(
    () => state,
    ([, , , salt, print, since = '']) => {
      expect([salt, print]).toEqual(['c2FsdA', 'admin=other monitor=x'])
      state = named('102', since)
      return [3, '102']
    },
  )
  await agreement.settle()
  state = named('101', 'admin=99 monitor=100')
  epoch.end({ name: 'monitor' }, 'name_removed')
  await agreement.settle()
  expect(state).toEqual(named('102', 'admin=99'))
  expect([await agreement.present(), counted, epoch.owed.isEmpty]).toEqual([
    { kind: 'differs' },
    [[3, 'name_removed']],
    true,
  ])
  // It is paid once.
  await agreement.settle()
  expect(store.asked.filter(({ script }) => script === PUBLISH)).toHaveLength(1)
})

it('H274 what a store does not take that answers stays owed, and no login precedes it', async () => {
  let refuses = true
  const taken = (reply: StoreReply): StoreReply => {
    if (refuses) throw storeDown()
    return reply
  }
  let state: StoreReply = STATE
  const { agreement, epoch, counted } = agreementWith(
    () => state,
    () => {
      const reply = taken([2, '101'])
      state = ['101', 'c2FsdA', 'mine', '2-0', '', '']
      return reply
    },
    ([, , ...grants]) => taken(grants),
  )
  epoch.end({ grants: ['a', 'b'] }, 'client')
  expect(await agreement.present()).toMatchObject({ kind: 'agreed' })
  epoch.end({ name: 'monitor' }, 'name_removed')
  expect(await agreement.settle()).toMatchObject({ epoch: '100' })
  expect(await agreement.present()).toEqual({ kind: 'unknown' })
  expect(epoch.owed.isEmpty).toBe(false)
  refuses = false
  expect(await agreement.present()).toMatchObject({ kind: 'agreed', epoch: '101' })
  expect(epoch.owed.isEmpty).toBe(true)
  expect(counted).toEqual([
    [2, 'client'],
    [2, 'name_removed'],
  ])
})

it('H284 a store that does not take a changed password is still read, so that revocations are heard', async () => {
  let state: StoreReply = STATE
  let refuses = true
  const { agreement, epoch } = agreementWith(
    () => state,
    () => {
      if (refuses) throw storeDown()
      state = ['102', 'c2FsdA', 'mine', '3-0', '', '']
      return [0, '102']
    },
  )
  const heard: string[] = []
  state = ['101', 'c2FsdA', 'earlier', '2-0', '', '']
  const known = epoch.apply
  epoch.apply = (event) => {
    heard.push(event.kind)
    known(event)
  }
  agreement.changed('')
  expect(await agreement.settle('2-0')).toMatchObject({ epoch: '101', last: '2-0' })
  expect(await agreement.present()).toEqual({ kind: 'unknown' })
  expect(heard).toContain('unsettled')
  refuses = false
  expect(await agreement.present()).toMatchObject({ kind: 'agreed', epoch: '102' })
})

/** A server that answers with `state`, and what was published there. */
function lossy() {
  const played: { state: StoreReply } = { state: STATE }
  const published: (readonly string[])[] = []
  const bed = agreementWith(
    () => played.state,
    (args) => {
      published.push(args)
      const epoch = String(Number(args[2]) + 1)
      played.state = [epoch, 'c2FsdA', 'mine', '1-0', '', '']
      return [0, epoch]
    },
  )
  return { ...bed, played, published }
}

it.each<[string, StoreReply, string]>([
  ['was emptied', [], ''],
  ['was restored from a backup of an earlier epoch', ['99', 'c2FsdA', 'mine', '1-0', '', ''], '99'],
  ['was restored from a backup of the same epoch', ['100', 'c2FsdA', 'mine', '3-0', '3-0', ''], '100'],
  ['was restored, and has newer events', ['100', 'c2FsdA', 'mine', '9-0', '3-0', ''], '100'],
])(
  'H133 a server that %s gets a later epoch, in which no earlier token works',
  async (_how, state, present) => {
    const { agreement, played, published, epoch, counted } = lossy()
    await agreement.settle('')
    played.state = state
    expect(await agreement.settle('5-0')).toMatchObject({ epoch: '101' })
    expect(published.map(([, expected, known, , , since]) => [expected, known, since])).toEqual([
      [present, '100', ''],
    ])
    expect([epoch.present, counted]).toEqual(['101', []])
    expect(await agreement.present()).toMatchObject({ kind: 'agreed', epoch: '101' })
  },
)

it('H133 a stream that has lost its oldest events only begins no epoch', async () => {
  const { agreement, played, published } = lossy()
  await agreement.settle('')
  played.state = ['100', 'c2FsdA', 'mine', '9-0', '', '']
  await agreement.settle('5-0')
  expect(published).toEqual([])
})

it('H133 an epoch that another sidecar has begun at an emptied server is enough', async () => {
  const { agreement, played, published, epoch } = lossy()
  await agreement.settle('')
  played.state = ['105', 'c2FsdA', 'mine', '1-0', '', '']
  await agreement.settle('5-0')
  expect([published, epoch.present]).toEqual([[], '105'])
})

it('H134 a sidecar whose password is not the one of the store does not begin an emptied one anew', async () => {
  const { agreement, played, published } = lossy()
  await agreement.settle('')
  played.state = ['101', 'c2FsdA', 'other', '2-0', '', '']
  await agreement.settle('')
  played.state = []
  await expect(agreement.settle('')).rejects.toThrow('which has another password')
  expect(published).toEqual([])
})
