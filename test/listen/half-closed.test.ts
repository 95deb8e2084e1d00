import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { feelForClient } from '../../src/listen/http1-half-closed.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it.each([true, false])(
  'watches a client that has closed its sending side with one listener, however long that takes (answered: %s)',
  (answered) => {
    let listeners = 0
    let sent = 0
    feelForClient({
      answered,
      waits: false,
      get sent() {
        sent += 1
        return sent
      },
      inform() {},
      onEnd() {
        listeners += 1
      },
      abandon() {},
    })
    vi.advanceTimersByTime(60_000)
    expect(listeners).toBe(1)
  },
)
