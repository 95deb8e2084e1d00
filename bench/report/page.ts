import type { Result } from '../result.ts'
export function renderPage(result: Result): string {
  return JSON.stringify(result)
}
