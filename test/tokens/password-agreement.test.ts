import { expect, it } from 'vitest'
import { createPasswordAgreement } from '../../src/fleet/agreement.ts'
import { createTokenCopies } from '../../src/fleet/copies.ts'
import { PUBLISH } from '../../src/fleet/epoch.ts'
import type { StoreReply } from '../../src/fleet/shared-store.ts'
import { stillClock } from '../support/clock.ts'
import { liveRequests } from '../support/live-requests.ts'
import { scriptedStore } from '../support/scripted-store.ts'

const STATE = ['dataset', '100', 'c2FsdA', 'mine', '1-0', 0, '']

function agreementWith(read: () => StoreReply, published: () => StoreReply = () => []) {
  const differences: boolean[] = []
  const store = scriptedStore((script) => (script === PUBLISH ? published() : read()))
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
    onPublished: () => {},
    onDiffers: (differs) => differences.push(differs),
    onBug: (error) => expect.unreachable(String(error)),
  })
  return { agreement, store, differences }
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
  let state: StoreReply = [...STATE.slice(0, 3), 'other', '1-0', 0, '']
  const { agreement, store, differences } = agreementWith(
    () => state,
    () => {
      state = [STATE[0] ?? '', '101', 'c2FsdA', 'mine', '2-0', 0, '']
      return [0, '101', 'dataset']
    },
  )
  await agreement.settle()
  expect(await agreement.present()).toMatchObject({ kind: 'agreed', epoch: '101' })
  state = [STATE[0] ?? '', '102', 'c2FsdA', 'other', '3-0', 0, '']
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
      state = ['dataset', '101', 'c2FsdA', 'mine', '2-0', 0, '']
      return [1, '101', 'dataset']
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
  state = ['dataset', '101', 'c2FsdA', 'mine', '2-0', 0, '']
  agreement.changed('')
  expect(await agreement.present()).toMatchObject({ kind: 'agreed', epoch: '101' })
  expect(store.asked.filter(({ script }) => script === PUBLISH)).toEqual([])
})
