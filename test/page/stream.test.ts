import { expect, it, onTestFinished, vi } from 'vitest'
import { keepStream } from '../../src/page/stream.js'
import { nextTurn } from '../../src/system/clock.ts'

it('The live page tries again after a refusal whose body is the JSON null', async () => {
  // The page has the timers of the browser.
  const due: (() => void)[] = []
  vi.stubGlobal('setTimeout', (f: () => void) => due.push(f))
  const asked = vi.fn(async () => Response.json(null, { status: 500 }))
  vi.stubGlobal('fetch', asked)
  onTestFinished(() => {
    vi.unstubAllGlobals()
  })
  const { link } = keepStream({ onEvent() {}, onLink() {}, onLoginNeeded() {} })
  await nextTurn()
  expect(link).toMatchObject({ phase: 'refused', reason: 'status 500' })
  expect(asked).toHaveBeenCalledTimes(1)
  for (const f of due.splice(0)) f()
  await nextTurn()
  expect(asked).toHaveBeenCalledTimes(2)
})
