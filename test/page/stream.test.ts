import { expect, it, onTestFinished, vi } from 'vitest'
import { keepStream } from '../../src/page/stream.js'

it('The live page tries again after a refusal whose body is the JSON null', async () => {
  vi.useFakeTimers()
  const asked = vi.fn(async () => Response.json(null, { status: 500 }))
  vi.stubGlobal('fetch', asked)
  onTestFinished(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })
  const { link } = keepStream({ onEvent() {}, onLink() {}, onLoginNeeded() {} })
  await vi.advanceTimersByTimeAsync(1_000)
  expect(link).toMatchObject({ phase: 'refused', reason: 'status 500' })
  expect(asked.mock.calls.length).toBeGreaterThan(1)
})
