import { describe, expect, it } from 'vitest'
import { NameMemory } from '../../src/http1/name-memory.ts'

describe('The names of an answer before', () => {
  it('C21 stand for none but themselves', () => {
    const names = new NameMemory()
    const read = (...texts: readonly string[]): string[] =>
      texts.map((text, i) => names.at(i, `>${text}<`, 1, 1 + text.length))
    for (const texts of [
      ['Server', 'Content-Type', 'X-A'],
      ['Server', 'Content-Type', 'X-A'],
      ['server', 'Content-Typ', 'X-AB'],
      ['Servet', 'Content-Type', 'X-A', ''],
      ['', '<', '>', 'X-A'],
      Array.from({ length: 100 }, (_, i) => `X-${i}`),
      Array.from({ length: 100 }, (_, i) => `X-${i + 1}`),
    ])
      expect(read(...texts)).toEqual(texts)
  })
})
