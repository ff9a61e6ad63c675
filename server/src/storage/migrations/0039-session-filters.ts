// Indexes for lists of sessions that are recorded, or that were opened in one way, newest first.
export const sessionFilters = {
  name: 'session-filters',
  statements: (): string[] => [
    'create index sessions_recorded_by_start on sessions (tenant_id, started_at, uid) where recorded = 1',
    'create index sessions_by_method on sessions (tenant_id, method, started_at, uid)',
  ],
}
