// E-mails about data budgets that a crash must not lose: since when one is on its way.
export const budgetEmails = {
  name: 'budget-emails',
  statements: (): string[] => [
    `alter table data_budgets add column emailing_since text not null default ''`,
    `create index data_budgets_emailing on data_budgets (emailing_since) where emailing_since <> ''`,
  ],
}
