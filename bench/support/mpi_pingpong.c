/* Ping-pong and one-way rate over MPI: as knotless-pingpong does it, and in the same JSON. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AHEAD = 64 };

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    int size = atoi(argv[1]), count = atoi(argv[2]), rate = strcmp(argv[3], "rate") == 0;
    char *data = calloc(1, (size_t)size + 1), answer;
    double *times = calloc((size_t)count, sizeof *times), start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        double begun = MPI_Wtime();
        if (rank == 0) {
            MPI_Send(data, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            if (!rate) MPI_Recv(data, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(data, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!rate) MPI_Send(data, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
        /* As many messages ahead as knotless-pingpong. */
        if (rate && ((i + 1) % AHEAD == 0 || i + 1 == count)) {
            if (rank == 0)
                MPI_Recv(&answer, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else
                MPI_Send(&answer, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
        times[i] = (MPI_Wtime() - begun) * 1e6 / 2;
    }
    double seconds = MPI_Wtime() - start;
    if (rank == 0 && rate)
        printf("{\"bytes\":%d,\"count\":%d,\"messages_per_s\":%.0f,\"mbit_per_s\":%.1f}\n", size,
               count, count / seconds, count / seconds * size * 8e-6);
    if (rank == 0 && !rate) {
        qsort(times, (size_t)count, sizeof *times, ascending);
        printf("{\"bytes\":%d,\"count\":%d,\"median_us\":%.3f,\"mean_us\":%.3f,\"p99_us\":%.3f}\n",
               size, count, times[count / 2], seconds * 1e6 / 2 / count,
               times[(size_t)count * 99 / 100]);
    }
    MPI_Finalize();
    return 0;
}
