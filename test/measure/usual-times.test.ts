import { describe, expect, it } from 'vitest'
import { UsualTimes } from '../../src/forward/usual-times.ts'

describe('H198 the usual time of a path', () => {
  it('moves by a 64th of the difference with each response that counts for it', () => {
    const times = new UsualTimes()
    times.ratio('/', 100, true)
    times.ratio('/', 164, true)
    expect(times.of('/')).toBe(101)
    times.ratio('/', 1_000, false)
    expect(times.of('/')).toBe(101)
  })

  it('counts as 10 ms if it is less: what is left is the network and the sidecar', () => {
    const times = new UsualTimes()
    times.ratio('/', 2, true)
    expect(times.ratio('/', 30, false)).toBe(3)
  })

  it('is known of the last 256 paths: clients can make no more memory of it', () => {
    const times = new UsualTimes()
    for (let path = 0; path < 257; path += 1) times.ratio(`/${path}`, 20, true)
    expect([times.of('/0'), times.of('/1'), times.of('/256')]).toEqual([undefined, 20, 20])
  })

  it('tells how long a silence means nothing: 250 times as long, at most 1.1 s, and 5 s with many places', () => {
    const times = new UsualTimes()
    times.ratio('/fast', 2, true)
    times.ratio('/slow', 100, true)
    expect([times.silence('/fast', false), times.silence('/fast', true)]).toEqual([500, 500])
    expect([times.silence('/slow', false), times.silence('/slow', true)]).toEqual([1_100, 5_000])
    expect(times.silence('/new', true)).toBe(0)
  })
})
