import type { Case } from './case.ts'

/** Limit on the attempts for one failure. */
const MAX_ATTEMPTS = 400

/** Shrinks a failing case while it still fails: removes whole writes first, then parts of each. */
export async function shrink(item: Case, stillFails: (smaller: Case) => Promise<boolean>): Promise<Case> {
  let best = item
  let left = MAX_ATTEMPTS

  async function accept(smaller: Case): Promise<boolean> {
    if (left <= 0) return false
    left -= 1
    if (!(await stillFails(smaller))) return false
    best = smaller
    return true
  }

  await accept({ ...best, writes: [best.writes.join('')] })
  for (let i = best.writes.length - 1; i >= 0 && best.writes.length > 1; i--) {
    await accept({ ...best, writes: best.writes.toSpliced(i, 1) })
  }
  for (const i of best.writes.keys()) {
    for (let size = (best.writes[i]?.length ?? 0) >> 1; size >= 1; size >>= 1) {
      for (let at = 0; at < (best.writes[i]?.length ?? 0); ) {
        const text = best.writes[i] ?? ''
        const shorter = best.writes.with(i, text.slice(0, at) + text.slice(at + size))
        if (!(await accept({ ...best, writes: shorter }))) at += size
      }
    }
  }
  return best
}
