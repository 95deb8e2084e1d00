import { expect, it } from 'vitest'
import { DOCUMENTED_LIMITS } from '../../src/verify/options.ts'
import { brokenPromises } from './real/broken-promises.ts'
import { NGINX } from './real/known-departures.ts'

/** Several windows of half a minute (ms). */
const TIMEOUT = 600_000

it(
  'postern verify finds what nginx limit_req breaks, and nothing else',
  async () => {
    const { start, limits, departures } = NGINX
    const broken = await brokenPromises(await start(limits), limits)
    expect(broken.map(({ id }) => id).sort()).toEqual(departures.map(({ promise }) => promise).sort())
  },
  TIMEOUT,
)

it('without a wait it finds what each response lacks', async () => {
  const broken = await brokenPromises(await NGINX.start(DOCUMENTED_LIMITS), DOCUMENTED_LIMITS, {
    quick: true,
  })
  expect(broken.map(({ id }) => id)).toEqual(['C15', 'C16'])
})
