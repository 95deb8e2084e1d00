import type { Figure } from '../figure.ts'

export const CURVES: readonly Figure[] = []
